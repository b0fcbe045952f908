// From predictions to scores: which rows count, which are skipped and why, in the units and directions of their quantities.
#include "validation/score_rows.h"

#include <gtest/gtest.h>

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
            .quantity = quantity,
            .stack = "megatron"};
  }
  Asked asked(const MeasuredRow* row, double predicted, Quantity quantity = Quantity::IterationTime) {
    return {.row = row, .question = question(quantity), .prediction = {.value = predicted, .fits = true, .chosen = 0}};
  }
};

// In 90 of 100 published runs the time was 0.8 to 1.6 times the predicted one.
const std::vector<Spread> kPublished = {
    {.architecture = "ampere", .framework = "megatron", .rows = 20, .low = 0.8, .high = 1.6}};

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
  EXPECT_DOUBLE_EQ(scored.low, 0.8 * 2.2);
  EXPECT_DOUBLE_EQ(scored.high, 1.6 * 2.2);
  EXPECT_EQ(out.asked, (std::vector<std::size_t>{0}));
}

// A rate is larger where the time is shorter: the ends change places.
TEST_F(ScoreRows, IntervalsOfRatesAreInverted) {
  const ScoredRows out = score_rows({asked(row("a", "100", "tflops_per_gpu"), 100, Quantity::TflopsPerGpu)}, kPublished);
  const ValidatedRow& scored = out.validation.scored.at(0);
  EXPECT_TRUE(scored.larger_is_better);
  EXPECT_DOUBLE_EQ(scored.low, 62.5);  // 100 / 1.6
  EXPECT_DOUBLE_EQ(scored.high, 125);  // 100 / 0.8
}

// A row without a question, one without an answer, and one that is scored: its index among those asked is 2. A row that only lacks a
// supported schedule states all that a prediction needs; one of unknown shape does not.
TEST_F(ScoreRows, SkippedRowsSayWhy) {
  std::vector<Asked> all = {{.row = row("a", "1"), .question = SkipReason::UnknownShape},
                            {.row = row("b", "1"), .question = question(), .prediction = {.reason = "does not fit"}},
                            asked(row("c", "1"), 1),
                            {.row = row("d", "1"), .question = SkipReason::Schedule}};
  const ScoredRows out = score_rows(all, {});
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
      {});
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
