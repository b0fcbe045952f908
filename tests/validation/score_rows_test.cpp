// From predictions to scores: which rows count, which are skipped and why, in the units and directions of their quantities.
#include "validation/score_rows.h"

#include <gtest/gtest.h>

#include <cmath>
#include <deque>

namespace foreshard::score_rows_test {
namespace {

// Rows of a made-up table; predictions are written in by the test.
class ScoreRows : public testing::Test {
 protected:
  std::deque<MeasuredRow> rows;

  const MeasuredRow* row(const std::string& id, const std::string& value, const std::string& quantity = "iteration_time_s") {
    rows.push_back({.file = "t.csv",
                    .line = static_cast<int>(rows.size()) + 2,
                    .cells = {{"row_id", id},
                              {"source", "paper"},
                              {"gpu", "A100"},
                              {"measured_quantity", quantity},
                              {"measured_value", value},
                              {"precision", "bf16"}}});
    return &rows.back();
  }
  static MeasuredCase question(Quantity quantity = Quantity::IterationTime) {
    return {.cluster = {.gpus = {{.name = "a100-80", .architecture = "ampere"}}, .nodes = {{.shape = {.gpu = "a100-80"}}}},
            .candidates = {{}},
            .quantity = quantity,
            .stack = "megatron"};
  }
  Asked asked(const MeasuredRow* row, double predicted, Quantity quantity = Quantity::IterationTime) {
    return {.row = row, .question = question(quantity), .prediction = {.value = predicted, .fits = true, .chosen = 0}};
  }
};

// Published runs that took 0.8 to 1.6 times what was predicted; those of the rows' own source do not count.
const Comparisons kPublished(
    {{.source = "another",
      .framework = "megatron",
      .architecture = "ampere",
      .rows = 5,
      .errors = {{-0.2}, {0}, {0.1}, {0.3}, {0.45}}},
     {.source = "third", .framework = "nemo", .architecture = "ampere", .rows = 1, .errors = {{0.1}}},
     {.source = "paper", .framework = "megatron", .architecture = "ampere", .rows = 1, .errors = {{5}}}});
Spread of_others() { return kPublished.without("paper").times({.framework = "megatron", .architecture = "ampere"}); }

}  // namespace

TEST_F(ScoreRows, ScoredRowsKeepWhatWasMeasuredAndPredicted) {
  const ScoredRows out = score_rows({asked(row("a", "2"), 2.2)}, kPublished);
  ASSERT_EQ(out.validation.scored.size(), 1U);
  const ValidatedRow& scored = out.validation.scored[0];
  EXPECT_EQ(scored.measured, 2);
  EXPECT_EQ(scored.predicted, 2.2);
  EXPECT_EQ(scored.architecture, "ampere");
  EXPECT_EQ(scored.framework, "megatron");
  EXPECT_FALSE(scored.memory || scored.larger_is_better || scored.ran_out);
  EXPECT_LE(scored.shipped.low, of_others().low * 2.2 * (1 + 1e-12));  // wider by what is not known of the GPU's rates
  EXPECT_GE(scored.shipped.high, of_others().high * 2.2 * (1 - 1e-12));
  EXPECT_LT(scored.shipped.high, 2.2 * std::exp(3));
  EXPECT_TRUE(scored.shipped.compared);
  EXPECT_EQ(scored.interval.low, scored.shipped.low);
  EXPECT_EQ(out.asked, (std::vector<std::size_t>{0}));
}

// A rate is larger where the time is shorter: the ends change places.
TEST_F(ScoreRows, IntervalsOfRatesAreInverted) {
  const ScoredRows out = score_rows({asked(row("a", "100", "tflops_per_gpu"), 100, Quantity::TflopsPerGpu)}, kPublished);
  const ValidatedRow& scored = out.validation.scored.at(0);
  EXPECT_TRUE(scored.larger_is_better);
  const ScoredRows time = score_rows({asked(row("a", "2"), 1)}, kPublished);
  EXPECT_DOUBLE_EQ(scored.interval.low, 100 / time.validation.scored.at(0).interval.high);
  EXPECT_DOUBLE_EQ(scored.interval.high, 100 / time.validation.scored.at(0).interval.low);
}

// A network that the row does not state: half of the assumed rate would take half as long again, twice the rate changes nothing.
TEST_F(ScoreRows, AnUnknownNetworkWidensTheInterval) {
  Asked stated = asked(row("a", "2"), 2), open = asked(row("b", "2"), 2);
  open.half_network = 3, open.twice_network = 2;
  const ScoredRows out = score_rows({stated, open}, kPublished);
  const ShippedInterval narrow = out.validation.scored.at(0).shipped, wide = out.validation.scored.at(1).shipped;
  EXPECT_DOUBLE_EQ(wide.low, narrow.low);
  EXPECT_NEAR(std::log(wide.high / 2), std::hypot(std::log(narrow.high / 2), std::log(1.5)), 1e-12);
}

// A row without a question, one without an answer, and one that is scored: its index among those asked is 2. A row that only lacks a
// supported schedule states all that a prediction needs; one of unknown shape does not.
TEST_F(ScoreRows, SkippedRowsSayWhy) {
  std::vector<Asked> all = {{.row = row("a", "1"), .question = SkipReason::UnknownShape},
                            {.row = row("b", "1"), .question = question(), .prediction = {.reason = "does not fit"}},
                            asked(row("c", "1"), 1),
                            {.row = row("d", "1"), .question = SkipReason::Schedule}};
  const ScoredRows out = score_rows(all, Comparisons({}));
  EXPECT_EQ(out.asked, (std::vector<std::size_t>{2}));
  ASSERT_EQ(out.validation.skipped.size(), 3U);
  EXPECT_EQ(out.validation.skipped[0].reason, name_of(SkipReason::UnknownShape));
  EXPECT_FALSE(out.validation.skipped[0].complete);
  EXPECT_EQ(out.validation.skipped[1].reason, name_of(SkipReason::Infeasible));
  EXPECT_EQ(out.validation.skipped[1].explanation, "does not fit");
  EXPECT_TRUE(out.validation.skipped[2].complete);
  EXPECT_EQ(out.validation.skipped[2].line, 5);
}

// A run that has several rows, one per quantity, is asked once whether it fits; a run that ran out of memory has no measured value.
TEST_F(ScoreRows, ARunIsJudgedForMemoryOnce) {
  const ScoredRows out = score_rows(
      {asked(row("a", "1"), 1), asked(row("a", "50", "tflops_per_gpu"), 50, Quantity::TflopsPerGpu), asked(row("b", "OOM"), 3)},
      Comparisons({}));
  ASSERT_EQ(out.validation.scored.size(), 3U);
  EXPECT_TRUE(out.validation.scored[0].checks_memory);
  EXPECT_FALSE(out.validation.scored[1].checks_memory);
  EXPECT_TRUE(out.validation.scored[2].checks_memory);
  EXPECT_TRUE(out.validation.scored[2].ran_out);
  EXPECT_EQ(out.validation.scored[2].measured, 0);
}

// Without a scored row there is nothing to learn from.
TEST_F(ScoreRows, NothingIsLearnedFromNothing) {
  Predictor predictor;
  EXPECT_TRUE(learning_of(predictor, {}, {}).empty());
}

}  // namespace foreshard::score_rows_test
