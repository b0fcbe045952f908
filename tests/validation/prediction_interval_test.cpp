// Intervals from residuals of measured runs.
#include "validation/prediction_interval.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

#include "core/base/error.h"

namespace foreshard::prediction_interval_test {

static ValidatedRow row(double measured, double predicted, bool rate = false) {
  return {.framework = "megatron",
          .architecture = "ampere",
          .larger_is_better = rate,
          .measured = measured,
          .predicted = predicted};
}

// Twenty runs that took 1.00, 1.01 ... 1.19 of what was predicted. With n = 20 the tails are 0.05 * 21 / 20 - 1 / 20 = 0.0025 of
// the sorted logarithms (19 gaps): 0.0475 of a gap above the least, and as much below the most.
TEST(PredictionInterval, IsTheSpreadOfTheCell) {
  std::vector<ValidatedRow> rows;
  for (int i = 0; i < 20; ++i) rows.push_back(row(1.0 + 0.01 * i, 1.0));
  const std::vector<Spread> all = spreads(rows);
  ASSERT_EQ(all.size(), 2U);
  EXPECT_NEAR(all[0].low, std::exp(0.0475 * std::log(1.01)), 1e-12);
  EXPECT_NEAR(all[0].high, std::exp(std::log(1.18) + (1 - 0.0475) * std::log(1.19 / 1.18)), 1e-12);
  const PredictionInterval known = prediction_interval(all, "ampere", "megatron", false, {10});
  EXPECT_NEAR(known.low.value, 10 * all[0].low, 1e-12);
  EXPECT_NEAR(known.high.value, 10 * all[0].high, 1e-12);
  EXPECT_EQ(known.rows, 20);
  EXPECT_FALSE(known.extrapolated);
  EXPECT_TRUE(prediction_interval(all, "hopper", "megatron", false, {10}).extrapolated);
}

// A throughput half of the predicted one is a time of twice the predicted one.
TEST(PredictionInterval, RatesAreTimesUpsideDown) {
  const std::vector<Spread> all = spreads(std::vector<ValidatedRow>(9, row(5, 10, true)));
  EXPECT_NEAR(all.front().low, 2, 1e-12);
  EXPECT_NEAR(all.front().high, 2, 1e-12);
}

// Seven rows are no cell; memory and rows that ran out of memory do not count.
TEST(PredictionInterval, FewRowsMakeNoCell) {
  std::vector<ValidatedRow> rows(7, row(1, 1));
  rows.push_back(row(1, 1)), rows.back().memory = true;
  rows.push_back(row(0, 1)), rows.back().ran_out = true;
  const std::vector<Spread> all = spreads(rows);
  ASSERT_EQ(all.size(), 1U);
  EXPECT_EQ(all[0].architecture, "");
  EXPECT_EQ(all[0].rows, 7);
}

// Dense runs took what was predicted, those with experts twice as long; each kind has its own cell and its own entry of all cells.
TEST(PredictionInterval, ModelsWithExpertsHaveTheirOwn) {
  std::vector<ValidatedRow> rows(9, row(10, 10)), mixtures(9, row(20, 10));
  const std::vector<Spread> dense = spreads(rows);
  for (ValidatedRow& mixture : mixtures) mixture.experts = true;
  rows.insert(rows.end(), mixtures.begin(), mixtures.end());
  const std::vector<Spread> all = spreads(rows);
  ASSERT_EQ(all.size(), 4U);
  EXPECT_TRUE(std::equal(dense.begin(), dense.end(), all.begin()));
  EXPECT_NEAR(prediction_interval(all, "ampere", "megatron", true, {10}).high.value, 20, 1e-9);
  EXPECT_NEAR(prediction_interval(all, "ampere", "megatron", false, {10}).high.value, 10, 1e-9);
  EXPECT_NEAR(prediction_interval(all, "hopper", "megatron", true, {10}).high.value, 20, 1e-9);
  EXPECT_NEAR(prediction_interval(dense, "ampere", "megatron", true, {10}).high.value, 10, 1e-9);  // no run tells more
  EXPECT_TRUE(prediction_interval(dense, "ampere", "megatron", true, {10}).extrapolated);
  EXPECT_EQ(parse_spreads(to_json(all), "r.json"), all);
}

TEST(PredictionInterval, ReadsWhatItWrites) {
  const std::vector<Spread> all = spreads(std::vector<ValidatedRow>(9, row(11, 10)));
  EXPECT_EQ(parse_spreads(to_json(all), "r.json"), all);
  EXPECT_THROW(parse_spreads(R"({"cells": [{"rows": 0}]})", "r.json"), Error);
}

}  // namespace foreshard::prediction_interval_test
