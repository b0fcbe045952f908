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

// Nine runs with Megatron took as much memory as predicted, nine with NeMo 1.1 times as much; other quantities than the peak do not count.
// Of both together nine of ten lie between them. A framework without runs has the spread of all.
TEST(PredictionInterval, MemoryByFramework) {
  ValidatedRow peak = row(10, 10);
  peak.memory = true, peak.quantity = "peak_mem_gib";
  std::vector<ValidatedRow> rows(9, peak), more(9, peak);
  for (ValidatedRow& of : more) of.framework = "nemo", of.measured = 11, of.architecture = "hopper", of.experts = true;
  rows.insert(rows.end(), more.begin(), more.end());
  rows.push_back(peak), rows.back().quantity = "static_mem_gib", rows.back().measured = 30;
  const std::vector<Spread> all = spreads(rows);
  ASSERT_EQ(all.size(), 3U);
  EXPECT_NEAR(memory_spread(all, "megatron").high, 1, 1e-12);
  EXPECT_NEAR(memory_spread(all, "nemo").low, 1.1, 1e-12);
  EXPECT_NEAR(memory_spread(all, "internevo").low, 1, 1e-9);
  EXPECT_NEAR(memory_spread(all, "internevo").high, 1.1, 1e-9);
  EXPECT_EQ(memory_spread({}, "nemo"), Spread{});
  EXPECT_EQ(prediction_interval(all, "", "nemo", false, {10}).high, Seconds{10});  // no times
  EXPECT_EQ(parse_spreads(to_json(all), "r.json"), all);
}

// Measured 0.9 to 1.25 of what is predicted: from 0.8 of the device on it may not fit, up to 1 / 0.9 of it may.
TEST(PredictionInterval, CloseToTheLimit) {
  const Spread errors = {.low = 0.9, .high = 1.25};
  EXPECT_FALSE(is_close(0.79, errors));
  EXPECT_TRUE(is_close(0.81, errors));
  EXPECT_TRUE(is_close(1, errors));
  EXPECT_TRUE(is_close(1.11, errors));
  EXPECT_FALSE(is_close(1.12, errors));
  EXPECT_FALSE(is_close(0.999, {}));
  EXPECT_FALSE(is_close(0.999, {.low = 0.8, .high = 0.95}));  // never more than predicted
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
