#include "report/summary/summarize.h"

#include <gtest/gtest.h>

#include <numeric>

#include "tests/report/played.h"

namespace foreshard::summarize_test {
namespace {

using namespace played;

Summary summary_of(const Result& result, int gpus = 8) {
  return summarize(result, cluster_of(gpus), {.tokens_per_sample = 100, .model_flops_per_sample = {2e9}, .parameters = 7});
}

// p = 4, m = 8, F = 1 ms, B = 2 ms: 33 ms (docs/schedules.md). 8 samples of 100 tokens.
TEST(Summarize, RatesOfAPipeline) {
  const Summary s = summary_of(result_of({.p = 4, .m = 8}));
  EXPECT_DOUBLE_EQ(s.iteration_time.value, 0.033);
  EXPECT_EQ(s.gpus, 4);
  EXPECT_EQ(s.stages, 4);
  EXPECT_EQ(s.microbatches, 8);
  EXPECT_EQ(s.parameters, 7);
  EXPECT_DOUBLE_EQ(s.samples_per_s, 8 / 0.033);
  EXPECT_DOUBLE_EQ(s.tokens_per_s, 800 / 0.033);
  EXPECT_DOUBLE_EQ(s.tokens_per_s_per_gpu, 200 / 0.033);
  // The test plan counts 1e9 FLOPs per unit of time: 3 units per action pair, 8 micro-batches, 4 stages = 96e9. Each GPU does
  // 1e12 FLOP/s, so 4 GPUs could do 4 * 33e9 in the iteration. The model's own count is 8 * 2e9.
  EXPECT_DOUBLE_EQ(s.flops.hardware.value, 96e9);
  EXPECT_DOUBLE_EQ(s.flops.hardware_utilization, 96.0 / 132);
  EXPECT_DOUBLE_EQ(s.flops.model.value, 16e9);
  EXPECT_DOUBLE_EQ(s.flops.model_utilization, 16.0 / 132);
  EXPECT_FALSE(s.cost_per_million_tokens);
  EXPECT_FALSE(s.energy_per_million_tokens_j);
}

// Utilisation is measured against the peak of the format that the matrices are multiplied in, and all replicas count.
TEST(Summarize, PeakOfThePrecisionAndAllRanks) {
  Result result = result_of({.p = 2, .m = 4, .replicas = 3});
  for (Segment& segment : result.plan.segments)
    for (Instruction& instruction : segment.instructions)
      if (auto* compute = std::get_if<Compute>(&instruction.what)) compute->shapes.front().dtype = DType::F16;
  Cluster cluster = cluster_of(6);
  cluster.gpus[0].fp16 = {4e12};
  const Summary s = summarize(result, cluster, {.model_flops_per_sample = {2e9}});
  // 2 stages, 4 micro-batches: (4 + 1) * 3 ms = 15 ms; 6 GPUs of 4e12; 3 replicas of 2 * 4 * 3e9.
  EXPECT_DOUBLE_EQ(s.flops.hardware.value, 72e9);
  EXPECT_DOUBLE_EQ(s.flops.hardware_utilization, 72e9 / (6 * 4e12 * 0.015));
  EXPECT_EQ(s.gpus, 6);
  EXPECT_DOUBLE_EQ(s.tokens_per_s, 12 / 0.015);  // no tokens: samples
}

// Idle 9 of 33 on every stage (p - 1)(F + B); warm-up r + 2(3 - r), see bubbles_test.cpp: mean 4.5 of each.
TEST(Summarize, BubblesSumUp) {
  const Summary s = summary_of(result_of({.p = 4, .m = 8}));
  EXPECT_DOUBLE_EQ(s.bubble.fraction, 9.0 / 33);
  EXPECT_DOUBLE_EQ(s.bubble.by_cause[0], 4.5 / 33);
  EXPECT_DOUBLE_EQ(s.bubble.by_cause[1], 4.5 / 33);
  EXPECT_DOUBLE_EQ(std::accumulate(s.bubble.by_cause.begin(), s.bubble.by_cause.end(), 0.0), s.bubble.fraction);
  for (const double share : s.bubble.per_stage) EXPECT_DOUBLE_EQ(share, 9.0 / 33);
  EXPECT_DOUBLE_EQ(s.bubble.by_cause_per_stage[0][0], 6.0 / 33);
  EXPECT_DOUBLE_EQ(s.bubble.by_cause_per_stage[3][0], 3.0 / 33);
  EXPECT_EQ(s.communication.exposed, 0);
}

// Folded and unfolded say the same: classes are weighted by their members.
TEST(Summarize, FoldingDoesNotChangeTheShares) {
  const Pipeline pipeline{.p = 3, .m = 5, .replicas = 4, .forward = {1, 2, 1}, .latency = 1, .reduce = 3, .update = 1};
  const Summary folded = summary_of(result_of(pipeline), 12), unfolded = summary_of(result_of(pipeline, Fold::None), 12);
  EXPECT_NEAR(folded.bubble.fraction, unfolded.bubble.fraction, 1e-12);
  for (std::size_t c = 0; c < kBubbleCauses; ++c) EXPECT_NEAR(folded.bubble.by_cause[c], unfolded.bubble.by_cause[c], 1e-12);
  EXPECT_NEAR(folded.communication.exposed, unfolded.communication.exposed, 1e-12);
  EXPECT_NEAR(folded.communication.hidden, unfolded.communication.hidden, 1e-12);
  EXPECT_EQ(folded.stage_times, unfolded.stage_times);
}

// One stage, 2 micro-batches of 3, then a reduction of 4 and an update of 2: 12. The reduction is exposed and hides nothing.
// Between two stages a transfer of 1 that the sender computes behind is hidden there.
TEST(Summarize, ExposedAndHiddenCommunication) {
  const Summary alone = summary_of(result_of({.p = 1, .m = 2, .replicas = 2, .reduce = 4, .update = 2}));
  EXPECT_DOUBLE_EQ(alone.communication.exposed, 4.0 / 12);
  EXPECT_EQ(alone.communication.hidden, 0);
  // p = 2, m = 2, F = B/2 = 1, transfer 1. Stage 0: F0 0-1, F1 1-2, ...; the send of F0 runs 1-2 behind F1: hidden 1. All
  // other transfers of stage 0 run while it waits or send nothing. Stage 1: F0 2-3, B0 3-5, F1 5-6, B1 6-8; it receives F1
  // 2-3 behind F0, sends B0 5-6 behind F1: hidden 2. Stage 0: B0 6-8 (received 5-6), B1 received 8-9, 9-11. Sum 3 over 2 * 11;
  // stage 0's receive of B1 (8-9) lies in its gap, its send of F1 (2-3) too.
  const Summary pair = summary_of(result_of({.p = 2, .m = 2, .latency = 1}));
  EXPECT_DOUBLE_EQ(pair.iteration_time.value, 0.011);
  EXPECT_DOUBLE_EQ(pair.communication.hidden, 3.0 / 22);
}

// A collective in line with compute is neither compute nor bubble; inside a merged span it is what the compute leaves over.
TEST(Summarize, ACollectiveOnTheComputeStreamIsExposed) {
  Result result = result_of({.p = 1, .m = 4, .replicas = 2, .reduce = 2, .update = 1});
  for (Segment& segment : result.plan.segments)
    for (Instruction& instruction : segment.instructions) instruction.stream = {0};
  result.trace = play(result.plan);
  for (const bool merge : {false, true}) {
    if (merge) result.trace = merged(result.trace);
    const Summary s = summary_of(result);
    EXPECT_EQ(s.bubble.fraction, 0);
    EXPECT_DOUBLE_EQ(s.communication.exposed, 2.0 / 15) << merge;  // 4 * 3 + 2 + 1
  }
}

// Compute that takes longer than its isolated time is still compute.
TEST(Summarize, SlowComputeIsNotCommunication) {
  Result result = result_of({.p = 1, .m = 4}, Fold::None, {0, 3});
  result.trace = merged(result.trace);
  EXPECT_EQ(summary_of(result).communication.exposed, 0);
}

// The shortest of all micro-batches, per stage; B = 5 of which 2 are weight gradients.
TEST(Summarize, StageTimes) {
  const Summary s =
      summary_of(result_of({.p = 2, .m = 3, .forward = {1, 4}, .backward = {5, 6}, .weight_gradient = 2, .latency = 1}));
  ASSERT_EQ(s.stage_times.size(), 2u);
  EXPECT_EQ(s.stage_times[0],
            (StageTimes{to_seconds({1'000'000}), to_seconds({3'000'000}), to_seconds({2'000'000}), to_seconds({1'000'000})}));
  EXPECT_EQ(s.stage_times[1],
            (StageTimes{to_seconds({4'000'000}), to_seconds({4'000'000}), to_seconds({2'000'000}), to_seconds({1'000'000})}));
}

TEST(Summarize, MemoryAndItsMargin) {
  Result result = result_of({.p = 2, .m = 1});
  const std::int64_t gib = 1LL << 30;
  result.plan.framework = {2 * gib};
  result.plan.reserve = {3 * gib};
  const auto buffer = [&](Category category, std::int64_t size, std::int64_t offset, bool resident) {
    return Buffer{.category = category, .bytes = {size * gib}, .offsets = {{offset * gib}}, .resident = resident};
  };
  result.plan.roles[0].buffers = {buffer(Category::Parameters, 10, 0, true), buffer(Category::Activations, 20, 10, false)};
  result.plan.roles[1].buffers = {buffer(Category::Parameters, 10, 0, true), buffer(Category::Optimizer, 30, 10, true)};
  MemoryCurve curve{.who = {0}, .peak = {Bytes{10 * gib}, {0}, {0}, {18 * gib}}};
  result.memory.curves = {curve};
  const Summary s = summary_of(result);
  EXPECT_EQ(s.memory[0].role, "stage 0");
  EXPECT_EQ(s.memory[0].live_peak.value, 28 * gib);
  EXPECT_EQ(s.memory[0].arena.value, 30 * gib);
  EXPECT_EQ(s.memory[0].statics.value, 10 * gib);
  EXPECT_EQ(s.memory[1].statics.value, 40 * gib);
  EXPECT_EQ(s.memory[1].with_framework.value, 42 * gib);
  EXPECT_EQ(s.fit.capacity.value, 80 * gib);
  EXPECT_EQ(s.fit.margin.value, (80 - 3 - 42) * gib);
  EXPECT_TRUE(s.feasible);

  result.plan.roles[1].buffers[1].offsets = {{50 * gib}};
  const Summary large = summary_of(result);
  EXPECT_FALSE(large.feasible);
  EXPECT_EQ(large.fit.margin.value, -5 * gib);
  EXPECT_EQ(large.infeasible_reason,
            "stage 1 needs 85.00 GiB (arena 80.00, framework 2.00, reserve 3.00) of 80.00 GiB: 5.00 GiB too much");
}

TEST(Summarize, LinksHottestFirstAndWhatATokenCosts) {
  Result result = result_of({.p = 1, .m = 2});  // 6 ms
  result.trace.links = {{"slow", {{0}, {1}}, {1e9}, 1.5e6, {}}, {"hot", {{2}}, {1e9}, 3e6, {}}};
  Cluster cluster = cluster_of(1);
  cluster.price_per_gpu_hour = 3.6;
  cluster.power_per_gpu_watts = 500;
  const Summary s = summarize(result, cluster, {.tokens_per_sample = 100});
  ASSERT_EQ(s.links.size(), 2u);
  EXPECT_EQ(s.links[0], (LinkUtilization{"hot", 1, 3e6 / (1e9 * 6e-3)}));
  EXPECT_EQ(s.links[1].links, 2);
  // 200 tokens in 6 ms: 30 GPU seconds per million, at 0.001 per second and 500 W.
  EXPECT_NEAR(*s.cost_per_million_tokens, 0.03, 1e-12);
  EXPECT_NEAR(*s.energy_per_million_tokens_j, 15000, 1e-6);
}

// A plan that was not played still says what memory it needs.
TEST(Summarize, WithoutATraceThereIsMemoryOnly) {
  Result result;
  result.plan = plan_of({.p = 2, .m = 2});
  const Summary s = summary_of(result);
  EXPECT_EQ(s.iteration_time.value, 0);
  EXPECT_EQ(s.bubble.fraction, 0);
  EXPECT_EQ(s.memory.size(), 2u);
  EXPECT_EQ(s.gpus, 2);
}

}  // namespace
}  // namespace foreshard::summarize_test
