// The measured trace: every instruction once, in the form and order that readers of a Trace expect.
#include <gtest/gtest.h>

#include <map>

#include "exec/interpreter/rank_steps.h"
#include "tests/exec/training.h"

namespace foreshard::trace_test {
namespace {

TEST(MeasuredTrace, HasEveryInstructionOnceInOrder) {
  const Plan plan = lowered(tiny_gpt(), in_double({.dp = 2, .tp = 2, .pp = 2, .batch = {.micro = 1}, .zero = {.stage = 1}}));
  const Execution done = run(plan, training(2));
  const Trace& trace = done.result.trace;
  EXPECT_EQ(trace.plan_hash, program_hash(plan));
  ASSERT_EQ(trace.classes.size(), 8U);
  std::size_t expected = 0;
  const Ranks ranks(plan);
  for (std::int32_t r = 0; r < ranks.count(); ++r) expected += steps_of(plan, ranks, {r}).size();
  ASSERT_EQ(trace.spans.size(), expected);
  for (std::size_t s = 0; s < trace.spans.size(); ++s) {
    const Span& span = trace.spans[s];
    EXPECT_LE(0, span.ready.value);
    EXPECT_LE(span.ready, span.begin);
    EXPECT_LT(span.begin, span.end);
    EXPECT_LE(span.end, trace.makespan);
    if (s == 0) continue;
    const Span& before = trace.spans[s - 1];
    ASSERT_TRUE(std::tie(before.who, before.stream, before.begin) <= std::tie(span.who, span.stream, span.begin));
    if (before.who == span.who && before.stream == span.stream) {
      EXPECT_LE(before.end, span.ready);
    }
  }
}

// What a step waits for has ended before it begins, and all members of a collective begin together.
TEST(MeasuredTrace, KeepsThePlansOrder) {
  const Plan plan = lowered(tiny_gpt(), in_double({.dp = 2, .tp = 2, .pp = 2, .batch = {.micro = 1}, .zero = {.stage = 3}}));
  const Execution done = run(plan, training(1));
  std::map<std::tuple<int, int, int>, const Span*> spans;  // (rank, action, instruction)
  for (const Span& span : done.result.trace.spans) spans[{span.who.value, span.action, span.instruction}] = &span;
  const Ranks ranks(plan);
  std::map<std::tuple<int, int, std::int64_t>, Nanoseconds> meetings;
  for (std::int32_t r = 0; r < ranks.count(); ++r) {
    const std::vector<RankStep> steps = steps_of(plan, ranks, {r});
    const auto span = [&](const RankStep& step) { return spans.at({r, step.action, step.instruction}); };
    for (const RankStep& step : steps) {
      for (const int earlier : step.after) EXPECT_LE(span(steps[static_cast<std::size_t>(earlier)])->end, span(step)->begin);
      const Role& role = plan.roles[ranks.role({r}).index()];
      const auto* collective = std::get_if<Collective>(&instruction_of(plan, role, step).what);
      if (!collective) continue;
      const auto [known, fresh] =
          meetings.try_emplace({collective->group.value, step.members[0].value, step.sequence}, span(step)->begin);
      EXPECT_EQ(known->second, span(step)->begin);
    }
  }
}

// wait binds to the newest record before it; without one, to the last of the run before.
TEST(RankSteps, WaitsBindToTheNewestRecord) {
  Plan plan;
  plan.segments.push_back(
      {.name = "s",
       .params = {{"slot", ParamKind::Slot}},
       .instructions = {{.name = "wait", .what = Mark{}, .stream = {0}, .waits = {{{0}, {ParamId{0}}}}},
                        {.name = "record", .what = Mark{}, .stream = {1}, .after = {0}, .records = {{{0}, {ParamId{0}}}}}}});
  plan.roles.push_back({.streams = {{}, {}},
                        .events = {{.name = "e", .slots = 2}},
                        .actions = {{{0}, {0}, {}}, {{0}, {0}, {}}, {{0}, {1}, {}}, {{0}, {0}, {}}}});
  const Ranks ranks(plan);
  const std::vector<RankStep> steps = steps_of(plan, ranks, {0});
  ASSERT_EQ(steps.size(), 8U);
  EXPECT_EQ(steps[0].after, std::vector<int>{});
  EXPECT_EQ(steps[0].after_previous, std::vector<int>{7});
  EXPECT_EQ(steps[2].after, std::vector<int>{1});
  EXPECT_EQ(steps[4].after_previous, std::vector<int>{5});  // slot 1
  EXPECT_EQ(steps[6].after, std::vector<int>{3});
  EXPECT_EQ(steps[3].after, std::vector<int>{2});
}

// Without barriers between the steps only the plan's own waits order the runs: the weights are the same bits.
TEST(Runs, FollowEachOtherWithoutABarrier) {
  for (const Strategy& strategy : std::vector<Strategy>{{.dp = 2,
                                  .pp = 2,
                                  .batch = {.micro = 1},
                                  .zero = {.stage = 1},
                                  .communication = {.overlap = Overlap{true, true, true, true}}},
                                                        {.dp = 2,
                                                        .batch = {.micro = 2},
                                                        .zero = {.stage = 3},
                                                        .communication = {.overlap = Overlap{true, true, true, true}}},
                                                        {.tp = 2, .pp = 2, .batch = {.micro = 1}}}) {
    const Plan plan = lowered(tiny_gpt(), in_double(strategy));
    const Execution with = run(plan, training(4));
    ExecuteOptions options = training(4);
    options.barrier = false;
    EXPECT_EQ(difference(run(plan, options), with).largest(), 0);
  }
}

TEST(Runs, AreTheSameBitsEachTime) {
  const Plan plan = lowered(tiny_gpt(), in_double({.dp = 2, .tp = 2, .pp = 2, .batch = {.micro = 1}, .zero = {.stage = 2}}));
  EXPECT_EQ(difference(run(plan, training(2)), run(plan, training(2))).largest(), 0);
}

}  // namespace
}  // namespace foreshard::trace_test
