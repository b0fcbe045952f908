// How long classes communicate and stages take, from a trace by hand.
#include "report/causes/occupancy.h"

#include <gtest/gtest.h>

namespace foreshard::occupancy_test {
namespace {

// One role with a compute stream 0 and a communication stream 1. Segment 0: a forward (4 ns) and an all-reduce on the compute stream (no
// isolated compute time). Segment 1: a backward of an input gradient (6) and a weight gradient (5), and a send to the next role.
Plan plan() {
  const auto compute = [](Phase phase) { return Instruction{.name = "c", .what = Compute{.phase = phase}, .stream = {0}}; };
  Plan p;
  p.stages = 1;
  p.groups = {{.name = "g"}};
  p.segments = {{.name = "f",
                 .instructions = {compute(Phase::Forward), {.name = "sum", .what = Collective{.group = {0}}, .stream = {0}}}},
                {.name = "b",
                 .instructions = {compute(Phase::InputGrad),
                                  compute(Phase::WeightGrad),
                                  {.name = "send", .what = Exchange{.to = Peer{.role_shift = 1}}, .stream = {1}}}}};
  p.roles = {{.name = "r",
              .device_kind = "gpu",
              .streams = {{.name = "compute"}, {.name = "send", .kind = StreamKind::Communication}},
              .actions = {{.segment = {0}, .does = {{.work = Work::F}}}, {.segment = {1}, .does = {{.work = Work::B}}}}}};
  p.costs = {{.device_kind = "gpu", .by_segment = {{{.busy = {4}}, {}}, {{.busy = {6}}, {.busy = {5}}, {}}}}};
  return p;
}

Span span(int action, int instruction, int stream, std::int64_t begin, std::int64_t end, int count = 1) {
  return {.who = {0},
          .action = action,
          .instruction = instruction,
          .count = count,
          .stream = {stream},
          .begin = {begin},
          .end = {end}};
}

//   compute   F 0-4   sum 4-7   I 10-16   W 16-21
//   send                              14-19
Trace trace() {
  return {
      .classes = {{.role = {0}, .members = {RankId{0}}}},
      .spans = {span(0, 0, 0, 0, 4), span(0, 1, 0, 4, 7), span(1, 0, 0, 10, 16), span(1, 1, 0, 16, 21), span(1, 2, 1, 14, 19)}};
}

}  // namespace

// The sum takes 3 ns of the compute stream; all 5 ns of the send are beside computing.
TEST(Occupancy, CommunicationOnTheComputeStreamIsExposed) {
  const Plan p = plan();
  const std::vector<Occupancy> classes = occupancy(p, trace(), sums_by_role(p));
  ASSERT_EQ(classes.size(), 1U);
  EXPECT_EQ(classes[0].communicating, Nanoseconds{3});
  EXPECT_EQ(classes[0].hidden, Nanoseconds{5});
}

// Merged into one span of 7 ns, the forward's isolated 4 ns are compute, and the rest is communication. A send from 5 to 12 is
// hidden until 7 and from 10.
TEST(Occupancy, MixedSpansAndGaps) {
  const Plan p = plan();
  Trace t = trace();
  t.spans = {span(0, 0, 0, 0, 7, 2), span(1, 0, 0, 10, 16), span(1, 1, 0, 16, 21), span(1, 2, 1, 5, 12)};
  const Occupancy own = occupancy(p, t, sums_by_role(p))[0];
  EXPECT_EQ(own.communicating, Nanoseconds{3});
  EXPECT_EQ(own.hidden, Nanoseconds{2 + 2});
}

// A backward of 11 ns has 5 ns of weight gradients; the transfer 5 ns. Of two micro-batches the shortest counts.
TEST(StageTimes, OfTheShortestMicrobatch) {
  Plan p = plan();
  Trace t = trace();
  const auto ns = [](std::int64_t n) { return to_seconds(Nanoseconds{n}); };
  std::vector<StageTimes> stages = stage_times(p, t, sums_by_role(p));
  ASSERT_EQ(stages.size(), 1U);
  EXPECT_EQ(stages[0].forward, ns(7));
  EXPECT_EQ(stages[0].backward_input, ns(6));
  EXPECT_EQ(stages[0].backward_weight, ns(5));
  EXPECT_EQ(stages[0].p2p, ns(5));
  p.roles[0].actions.push_back(p.roles[0].actions[0]);
  t.spans.insert(t.spans.begin() + 4, span(2, 0, 0, 30, 33));
  EXPECT_EQ(stage_times(p, t, sums_by_role(p))[0].forward, ns(3));
}

// On the compute stream, as without overlap, a transfer is no part of the backward: 5 + 6 + 5 ns are 6 of input gradients.
TEST(StageTimes, TransfersOnTheComputeStreamAreNoCompute) {
  Plan p = plan();
  Trace t = trace();
  p.segments[1].instructions[2].stream = {0};
  t.spans.back() = span(1, 2, 0, 21, 26);
  const StageTimes stage = stage_times(p, t, sums_by_role(p)).at(0);
  EXPECT_EQ(stage.backward_input, to_seconds(Nanoseconds{6}));
  EXPECT_EQ(stage.p2p, to_seconds(Nanoseconds{5}));
}

// Roles on GPUs of one kind share a table.
TEST(SumsByRole, OneTableForEachKind) {
  Plan p = plan();
  p.roles.push_back(p.roles[0]), p.roles.push_back(p.roles[0]);
  p.roles[1].device_kind = "other";
  const SumsByRole sums = sums_by_role(p);
  EXPECT_EQ(sums.tables.size(), 2U);
  EXPECT_EQ(sums.of_role, (std::vector<std::size_t>{0, 1, 0}));
  EXPECT_EQ(sums[RoleId{2}].weight_gradient({1}), Nanoseconds{5});
  EXPECT_EQ(sums[RoleId{1}].weight_gradient({1}), Nanoseconds{});  // no costs for it
}

}  // namespace foreshard::occupancy_test
