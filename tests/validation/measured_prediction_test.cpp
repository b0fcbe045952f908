// Of a long iteration a prediction lowers only the first micro-batches: against the whole iteration.
#include "validation/measured_prediction.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <vector>

#include "strategy/cost/framework_preset.h"
#include "strategy/estimate/estimate.h"
#include "strategy/tune/tune.h"

namespace foreshard::measured_prediction_test {
namespace {

// 512 micro-batches in cells of interleaved stages, on eight pipeline ranks with four chunks each. The first rounds are forwards only, so
// that with two rounds of eight lowered the rest of the iteration would be predicted 19 % too long.
TEST(Predictor, ShortIterationsGiveTheTimeOfLongOnes) {
  for (const MeasuredRow& row : load_measured(std::string(FORESHARD_SOURCE) + "/data/measured/megatron_bridge.csv")) {
    if (row.text("row_id") != "mbridge-26.02-Qwen3_235B_a22B-H100-256g-gbs8192-mbs1-fp8-tp2pp8") continue;
    const auto question = std::get<MeasuredCase>(measured_case(row));
    ASSERT_EQ(question.quantity, Quantity::TokensPerGpu);
    const Prediction prediction = Predictor().predict(question);
    ASSERT_GE(prediction.chosen, 0);
    const Strategy& strategy = question.candidates[static_cast<std::size_t>(prediction.chosen)];
    EXPECT_EQ(strategy.batch.global / strategy.batch.micro / strategy.dp, 512);
    const auto whole = tuned_plan(question.model, question.cluster, strategy, {.ignore_memory = true, .pack_by_order = false});
    const double seconds = refine(std::get<Lowered>(whole), question.cluster).time.value +
                           framework_preset(strategy.framework).host.per_step.value;
    const auto tokens = static_cast<double>(strategy.batch.global * strategy.batch.seq);
    EXPECT_NEAR(tokens / seconds / question.gpus / prediction.value, 1, 0.02);
    return;
  }
  FAIL() << "no such row";
}

// Rows that differ only in the number of micro-batches share one replay, whatever is asked first: as many as are lowered, and more.
TEST(Predictor, IterationsOfDifferentLengthsShareAReplay) {
  const auto rows = load_measured(std::string(FORESHARD_SOURCE) + "/data/measured/vtrain_single.csv");
  const auto found = std::ranges::find_if(rows, [](const MeasuredRow& row) { return row.number("pp").value_or(0) == 2; });
  ASSERT_NE(found, rows.end());
  auto question = std::get<MeasuredCase>(measured_case(*found));
  ASSERT_EQ(question.candidates.size(), 1U);
  Strategy& strategy = question.candidates.front();
  const std::int64_t together = strategy.batch.micro * strategy.dp;
  for (const std::vector<int>& order : {std::vector{8, 64, 512}, {512, 64, 8}}) {
    Predictor shared;
    for (const int microbatches : order) {
      strategy.batch.global = microbatches * together;
      EXPECT_EQ(shared.predict(question).value, Predictor().predict(question).value) << microbatches;
    }
  }
}

}  // namespace
}  // namespace foreshard::measured_prediction_test
