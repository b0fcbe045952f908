// Scores of models with experts beside those of dense ones.
#include "validation/validation.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

#include "validation/validation_text.h"

namespace foreshard::validation_test {
namespace {

ValidatedRow row(double measured, double predicted, bool experts) {
  return {.source = "table",
          .gpu = "H100",
          .framework = "megatron",
          .experts = experts,
          .checks_memory = true,
          .measured = measured,
          .predicted = predicted,
          .sweep = "one"};
}

// Errors of 10 % and 20 % without experts, of 50 % with: nothing of the dense numbers knows of the third row.
TEST(Validation, ModelsWithExpertsHaveCellsAndSumsOfTheirOwn) {
  const std::vector<ValidatedRow> dense = {row(10, 11, false), row(20, 24, false)};
  std::vector<ValidatedRow> all = dense;
  all.push_back(row(10, 15, true));
  const Validation before = validate(dense, {}), after = validate(all, {});
  ASSERT_EQ(after.cells.size(), 2U);
  EXPECT_EQ(after.cells[0].score, before.cells[0].score);
  EXPECT_TRUE(after.cells[1].experts);
  EXPECT_EQ(framework_words(after.cells[1]), "megatron, experts");
  EXPECT_NEAR(after.experts_time.median, 0.5, 1e-12);
  EXPECT_EQ(after.experts_time.n, 1);
  EXPECT_NEAR(after.time.mean_of_cells, 0.15, 1e-12);
  EXPECT_EQ(static_cast<const Score&>(after.time), static_cast<const Score&>(before.time));
  EXPECT_EQ(after.complete_scored, 2);
  EXPECT_EQ(after.verdicts.true_negative, 2);
  EXPECT_EQ(after.sweeps, 0);  // of three rows and more
  EXPECT_NE(validation_text(after).find("models with experts, time: 1 row"), std::string::npos) << validation_text(after);
}

// Three runs that ran out of memory: one is predicted to, one to fit though closer to the capacity than such predictions err, one to fit.
TEST(Validation, CloseVerdictsAreNotSaidToFit) {
  std::vector<ValidatedRow> rows(3, row(0, 70, false));
  for (ValidatedRow& out : rows) out.ran_out = out.memory = true;
  rows[0].fits = false, rows[1].close = true;
  const Validation v = validate(rows, {});
  const std::string text = validation_text(v), each = validation_rows_markdown(v), json = validation_json(v, true);
  for (const char* verdict : {"does not fit", "may fit", "fits"}) {
    EXPECT_NE(each.find("| " + std::string(verdict) + " |"), std::string::npos) << each;
    EXPECT_NE(json.find("\"verdict\": \"" + std::string(verdict) + "\""), std::string::npos) << json;
  }
  const auto words = [](std::string wrapped) {
    std::ranges::replace(wrapped, '\n', ' ');
    for (std::size_t at; (at = wrapped.find("  ")) != std::string::npos;) wrapped.erase(at, 1);
    return wrapped;
  };
  EXPECT_NE(words(text).find("1 were predicted to, 1 were said to fit, 1 that they may fit"), std::string::npos) << text;
}

// Three runs, of which the source prints times and rates: 10, 12 and 14 s, or 14, 12 and 10 samples/s; the first two are predicted the wrong
// way round. Four of six pairs of rows are right. Three more runs with a sweep of times only, all right, make it seven of nine pairs of rows, but
// five of six pairs of runs.
TEST(Validation, PairsOfRunsCountOnce) {
  std::vector<ValidatedRow> rows;
  const auto add = [&](const char* run, const char* sweep, double measured, double predicted, bool rate) {
    rows.push_back(row(measured, predicted, false));
    rows.back().row_id = run, rows.back().sweep = sweep, rows.back().larger_is_better = rate;
  };
  add("a", "times", 10, 13, false), add("b", "times", 12, 12, false), add("c", "times", 14, 14, false);
  add("a", "rates", 14, 11, true), add("b", "rates", 12, 12, true), add("c", "rates", 10, 10, true);
  const Validation twice = validate(rows, {});
  EXPECT_EQ(twice.pairs, 6);
  EXPECT_NEAR(twice.order, 4.0 / 6, 1e-12);
  EXPECT_EQ(twice.pairs_of_runs, 3);
  EXPECT_NEAR(twice.order_of_runs, 2.0 / 3, 1e-12);
  add("d", "others", 10, 10, false), add("e", "others", 12, 12, false), add("f", "others", 14, 14, false);
  const Validation more = validate(rows, {});
  EXPECT_NEAR(more.order, 7.0 / 9, 1e-12);
  EXPECT_NEAR(more.order_of_runs, 5.0 / 6, 1e-12);
}

// Ten rows of another source are enough for an interval of the kind that they are of, and of no other.
TEST(Validation, IntervalsComeFromRowsOfTheSameKind) {
  std::vector<ValidatedRow> rows(10, row(10, 11, false));
  for (ValidatedRow& other : rows) other.source = "other";
  rows.push_back(row(10, 12, false));
  rows.push_back(row(10, 12, true));
  const Validation v = validate(rows, {});
  EXPECT_GT(v.scored[10].interval.high, 0);
  EXPECT_EQ(v.scored[11].interval.high, 0);
}

// Twenty rates of another source are 20 % lower than predicted, so its times are 25 % longer than predicted. A time, whose cell has no
// other row, is expected to be longer than predicted, not shorter.
TEST(Validation, RatesAndTimesOfOtherSourcesPointTheSameWay) {
  std::vector<ValidatedRow> rows(20, row(8, 10, false));
  for (ValidatedRow& rate : rows) rate.source = "other", rate.architecture = "ampere", rate.larger_is_better = true;
  rows.push_back(row(12.5, 10, false));
  const Validation v = validate(rows, {});
  EXPECT_NEAR(v.scored[20].interval.low, 12.5, 1e-9);
  EXPECT_NEAR(v.scored[20].interval.high, 12.5, 1e-9);
  EXPECT_TRUE(v.scored[20].interval.extrapolated);
  EXPECT_NEAR(v.scored[0].interval.low, 8, 1e-9);  // its own cell has rates
}

// Rows of the same framework on the same generation come before those of other sources.
TEST(Validation, IntervalsComeFromRowsLikeIt) {
  std::vector<ValidatedRow> rows(20, row(20, 10, false));
  for (ValidatedRow& other : rows) other.source = "other", other.architecture = "ampere";
  rows.insert(rows.end(), 20, row(30, 10, false));
  for (std::size_t i = 20; i < 40; ++i) rows[i].gpu = "H200", rows[i].architecture = "hopper";
  rows.push_back(row(10, 10, false));
  rows.back().architecture = "hopper";
  const Validation v = validate(rows, {});
  EXPECT_NEAR(v.scored.back().interval.low, 30, 1e-9);
  EXPECT_NEAR(v.scored.back().interval.high, 30, 1e-9);
  EXPECT_FALSE(v.scored.back().interval.extrapolated);
}

// Of nine residuals -4 ... 4 the range is -4 to 4, which holds 80 % of the next ones. Their standard deviation is sqrt(60 / 8); Student's t
// with eight degrees of freedom has its 95th percentile at 1.860. Of 39 residuals the quantiles 0.05 * 40 / 39 - 1 / 39 = 1 / 39 count.
TEST(Validation, FewResidualsWidenTheInterval) {
  std::vector<double> residuals;
  for (int i = -4; i <= 4; ++i) residuals.push_back(i);
  const LogEnds few = central_ends(residuals);
  EXPECT_NEAR(few.high, 1.860 * std::sqrt(60.0 / 8 * 10 / 9), 1e-9);
  EXPECT_NEAR(few.low, -few.high, 1e-12);
  residuals.clear();
  for (int i = -19; i <= 19; ++i) residuals.push_back(i);
  EXPECT_NEAR(central_ends(residuals).high, 19 - 38.0 / 39, 1e-9);
  EXPECT_EQ(central_ends({0.5}).high, 0.5);
}

// A close verdict counts by its better half; a run that ran out is missed for sure only if its verdict was not close.
TEST(Validation, CloseVerdicts) {
  ValidatedRow out = row(0, 1, false), ran = row(1, 1, false);
  out.ran_out = true, out.fits = true;
  const Verdicts plain = validate({out, ran}, {}).verdicts;
  EXPECT_EQ(plain.surely_missed, 1);
  EXPECT_EQ(plain.close_out + plain.close_ran, 0);
  out.close = ran.close = true;
  const Verdicts close = validate({out, ran}, {}).verdicts;
  EXPECT_EQ(close.surely_missed, 0);
  EXPECT_EQ(close.close_out, 1);
  EXPECT_EQ(close.close_ran, 1);
  EXPECT_EQ(close.right(), plain.right());
}

}  // namespace
}  // namespace foreshard::validation_test
