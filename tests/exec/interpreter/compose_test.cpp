// Composed time: each instruction's own cost, along the plan's dependencies.
#include <gtest/gtest.h>

#include "exec/interpreter/measured_trace.h"
#include "tests/exec/training.h"

namespace foreshard::compose_test {
namespace {

constexpr LinkModel kFree{.latency = {0}, .bandwidth = {1e30}};

// Every forward of a chunk costs `forward`, every backward twice that, nothing else costs anything.
std::vector<RankRun> costs(const Plan& plan, const Ranks& ranks, std::vector<std::vector<RankStep>>& steps,
                           std::int64_t forward) {
  std::vector<RankRun> runs;
  for (std::int32_t r = 0; r < ranks.count(); ++r) steps.push_back(steps_of(plan, ranks, {r}));
  for (std::int32_t r = 0; r < ranks.count(); ++r) {
    const std::vector<RankStep>& list = steps[static_cast<std::size_t>(r)];
    const Role& role = plan.roles[ranks.role({r}).index()];
    RankRun run{.steps = &list, .spans = std::vector<StepSpan>(list.size())};
    std::int32_t paid = -1;  // the action whose cost is placed
    for (std::size_t s = 0; s < list.size(); ++s) {
      const Action& action = role.actions[static_cast<std::size_t>(list[s].action)];
      if (paid == list[s].action || action.does.empty() || action.does[0].work == Work::Update) continue;
      if (!std::holds_alternative<Compute>(instruction_of(plan, role, list[s]).what)) continue;
      run.spans[s].own = forward * (action.does[0].work == Work::F ? 1 : 2);
      paid = list[s].action;
    }
    runs.push_back(std::move(run));
  }
  return runs;
}

std::int64_t makespan(const Strategy& strategy, std::int64_t forward, const LinkModel& link = kFree) {
  const Plan plan = lowered(tiny_gpt(false), in_double(strategy));  // untied: no sum of embeddings at the end
  const Ranks ranks(plan);
  std::vector<std::vector<RankStep>> steps;
  return measured_trace(plan, ranks, compose(plan, ranks, costs(plan, ranks, steps, forward), link)).makespan.value;
}

// GPipe and 1F1B take (m + p - 1) (f + b) (Narayanan et al. 2021, section 2.2); f = 100, b = 200.
TEST(Compose, PipelinesTakeTheirFormula) {
  for (const int p : {1, 2, 4})
    for (const std::int64_t m : {4, 8})
      for (const Schedule schedule : {Schedule::GPipe, Schedule::OneFOneB}) {
        const std::int64_t time = makespan({.pp = p, .pipeline = {.schedule = schedule}, .batch = {.micro = 8 / m}}, 100);
        EXPECT_EQ(time, (m + p - 1) * 300) << p << " " << m;
      }
}

// Interleaved with v chunks of f / v each: m (f + b) + (p - 1)(f + b) / v, chunks of 50: 8 * 300 + 150.
TEST(Compose, InterleavingShortensTheBubble) {
  EXPECT_EQ(makespan({.pp = 2, .virtual_stages = 2, .batch = {.micro = 1}}, 50), 8 * 300 + 150);
}

// Two stages, one micro-batch: f + b on each, and one message each way of 8 samples x 16 positions x 32 numbers of 8 bytes =
// 32768 bytes: 1000 ns + 32768 ns at 1 GB/s.
TEST(Compose, MessagesTakeTheLink) {
  EXPECT_EQ(makespan({.pp = 2, .batch = {.micro = 8}}, 100, {.latency = {1e-6}, .bandwidth = {1e9}}), 600 + 2 * 33768);
}

// Ring all-reduce of n = 4: 6 steps of latency and 6/4 of the bytes; an all-gather half of both.
TEST(Compose, CollectivesTakeRingTime) {
  const LinkModel link{.latency = {1e-6}, .bandwidth = {1e9}};
  EXPECT_NEAR(transfer_time(link, {.kind = CollectiveKind::AllReduce, .bytes = {4000}}, 4).value, 6e-6 + 6e-6, 1e-15);
  EXPECT_NEAR(transfer_time(link, {.kind = CollectiveKind::AllGather, .bytes = {4000}}, 4).value, 3e-6 + 3e-6, 1e-15);
  EXPECT_EQ(transfer_time(link, {.kind = CollectiveKind::AllReduce, .bytes = {4000}}, 1).value, 0);
}

// Measured for real: the composed timeline is no shorter than any stream's own work and no longer than all of it.
TEST(Compose, EmulatedTimeOfARunLiesBetweenItsBounds) {
  const Plan plan = lowered(tiny_gpt(), in_double({.dp = 2, .pp = 2, .batch = {.micro = 1}}));
  ExecuteOptions options = training(3);
  options.time = TimeMode::Emulated;
  const Execution done = run(plan, options);
  std::vector<std::int64_t> compute(4, 0);
  std::int64_t all = 0;
  for (const Span& span : done.result.trace.spans) {
    all += span.end.value - span.begin.value;
    if (span.stream.value == 0) compute[span.who.index()] += span.end.value - span.begin.value;
  }
  for (const std::int64_t rank : compute) EXPECT_GE(done.result.trace.makespan.value, rank);
  EXPECT_LE(done.result.trace.makespan.value, all);
  EXPECT_EQ(done.result.trace.origin, Origin::Measured);
  EXPECT_EQ(done.iteration_time_s, to_seconds(done.result.trace.makespan).value);
}

}  // namespace
}  // namespace foreshard::compose_test
