#include "report/causes/bubbles.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <random>

#include "tests/report/played.h"

namespace foreshard::bubbles_test {
namespace {

using namespace played;
using Causes = std::array<std::int64_t, kBubbleCauses>;  // in units

std::vector<Causes> causes_of(const Result& result, const Trace& trace, std::int64_t unit = 1'000'000) {
  std::vector<Causes> sums(trace.classes.size());
  for (Causes& sum : sums) sum.fill(0);
  for (const Bubble& bubble : find_bubbles(result.plan, trace, bind_spans(result.plan, trace)))
    sums[bubble.who.index()][static_cast<std::size_t>(bubble.cause)] += (bubble.end - bubble.begin).value;
  for (Causes& sum : sums)
    for (std::int64_t& time : sum) time /= unit;
  return sums;
}
std::vector<Causes> causes_of(const Result& result) { return causes_of(result, result.trace); }

// 1F1B, equal stages, F = 1, B = 2. Rank r issues p - r forwards before its first backward; the first begins at rF, so
// they end at pF; the first gradient has p - 1 - r stages to come back through: B0 begins at pF + (p-1-r)B.
//   warm-up = rF + (p-1-r)B          the rest of the (p-1)(F+B) idle is drain = (p-1-r)F + rB
TEST(Bubbles, OneFOneBIsWarmUpAndDrain) {
  const int p = 4;
  const auto causes = causes_of(result_of({.p = p, .m = 8}));
  for (int r = 0; r < p; ++r)
    EXPECT_EQ(causes[static_cast<std::size_t>(r)], (Causes{r + (p - 1 - r) * 2, (p - 1 - r) + r * 2, 0, 0, 0, 0})) << r;
}

// GPipe: rank r starts at rF, its m forwards end at (r+m)F, B0 begins when all forwards and p-1-r backwards are
// through: (m+p-1)F + (p-1-r)B. Its last backward ends rB before that of rank 0.
TEST(Bubbles, GPipeIsWarmUpAndDrain) {
  const int p = 4;
  const auto causes = causes_of(result_of({.schedule = Schedule::GPipe, .p = p, .m = 8}));
  for (int r = 0; r < p; ++r)
    EXPECT_EQ(causes[static_cast<std::size_t>(r)], (Causes{(p - 1) + (p - 1 - r) * 2, r * 2, 0, 0, 0, 0})) << r;
}

// Two stages, the second twice as slow (F = 2, B = 4), m = 4:
//   r0  F0 0-1  F1 1-2  . B0 7-9  F2 9-10  . B1 13-15  F3 15-16  . B2 19-21  . B3 25-27
//   r1  . F0 1-3  B0 3-7  F1 7-9  B1 9-13  F2 13-15  B2 15-19  F3 19-21  B3 21-25  .
TEST(Bubbles, ASlowStageShowsAsDependency) {
  const auto causes = causes_of(result_of({.p = 2, .m = 4, .forward = {1, 2}, .backward = {2, 4}}));
  EXPECT_EQ(causes[0], (Causes{5, 7, 3, 0, 0, 0}));
  EXPECT_EQ(causes[1], (Causes{1, 2, 0, 0, 0, 0}));
}

// One transfer of 3 units each way, p = 2, m = 1: stage 0 waits 3 (there), 3 (stage 1 works), 3 (back); stage 1 waits
// for the forward (1) and the wire (3), and at the end for the wire (3, which its own send covers) and the backward of
// stage 0 (2).
TEST(Bubbles, TimeOnTheWireIsExposedCommunication) {
  const auto causes = causes_of(result_of({.p = 2, .m = 1, .latency = 3}));
  EXPECT_EQ(causes[0], (Causes{3, 0, 0, 6, 0, 0}));
  EXPECT_EQ(causes[1], (Causes{1, 2, 0, 6, 0, 0}));
}

// At the end every stage reduces (2) and updates (1) on its own. Stage r had finished 2r earlier than stage 0, and
// loses just that to the drain however late its own end of step is.
TEST(Bubbles, TheEndOfTheStepKeepsTheDrainApart) {
  const int p = 4;
  const auto causes = causes_of(result_of({.p = p, .m = 8, .reduce = 2, .update = 1}));
  for (int r = 0; r < p; ++r)
    EXPECT_EQ(causes[static_cast<std::size_t>(r)], (Causes{r + (p - 1 - r) * 2, (p - 1 - r) + r * 2, 0, 2, 0, 0})) << r;
}

// The same with a collective over all stages (2 more): stage r waits for stage 0 before it, which is its drain.
TEST(Bubbles, ACollectiveOverAllStagesWaitsForTheDrain) {
  const int p = 4;
  const auto causes = causes_of(result_of({.p = p, .m = 8, .reduce = 2, .update = 1, .norm = true}));
  for (int r = 0; r < p; ++r)
    EXPECT_EQ(causes[static_cast<std::size_t>(r)], (Causes{r + (p - 1 - r) * 2, (p - 1 - r) + r * 2, 0, 4, 0, 0})) << r;
}

// No pipeline: stage 1 of two independent-looking roles cannot exist, so the barrier is made by an update that is
// longer on one stage. p = 2, m = 1, updates of 1 on stage 0 and 6 on stage 1: stage 0 ends at 6 + 1, stage 1 at 4 + 6
// = 10.
TEST(Bubbles, WhatTheDrainDoesNotExplainIsTheBarrier) {
  Result result = result_of({.p = 2, .m = 1, .update = 1});
  // The update has its own segment per result; give stage 1 a copy that takes longer.
  const Action& update = result.plan.roles[1].actions.back();
  result.plan.segments.push_back(result.plan.segments[update.segment.index()]);
  auto& costs = result.plan.costs[0].by_segment;
  costs.push_back(costs[update.segment.index()]);
  costs.back().back().busy = {6'000'000};
  result.plan.roles[1].actions.back().segment = {static_cast<std::int32_t>(result.plan.segments.size()) - 1};
  result.trace = play(result.plan);
  EXPECT_EQ(result.trace.makespan.value, 10'000'000);
  const auto causes = causes_of(result);
  EXPECT_EQ(causes[0], (Causes{3, 0, 0, 0, 0, 3}));  // waits 3 for stage 1; its lead over the last work (its own) is 0
  EXPECT_EQ(causes[1], (Causes{1, 0, 0, 0, 0, 0}));  // lead of 2, but it never stands still
}

// The drain is spent once. p = 2, m = 1: stage 0 ends its backward at 6, stage 1 at 4. Both meet for the norm (6 to 7), then
// stage 0 updates for 5 and stage 1 for 1: stage 1 waited 2 for the drain, 1 for the wire, and 4 at the end for nothing of it.
TEST(Bubbles, TheLeadIsSpentOnce) {
  Result result = result_of({.p = 2, .m = 1, .reduce = 1, .update = 1, .norm = true});
  const SegmentId update = result.plan.roles[0].actions.back().segment;
  result.plan.segments.push_back(result.plan.segments[update.index()]);
  auto& costs = result.plan.costs[0].by_segment;
  costs.push_back(costs[update.index()]);
  costs.back().back().busy = {5'000'000};
  costs.back()[0].busy = costs[update.index()][0].busy = {0};  // the reduction inside a stage takes no time
  result.plan.roles[0].actions.back().segment = {static_cast<std::int32_t>(result.plan.segments.size()) - 1};
  result.trace = play(result.plan);
  EXPECT_EQ(result.trace.makespan.value, 12'000'000);
  const auto causes = causes_of(result);
  EXPECT_EQ(causes[0], (Causes{3, 0, 0, 1, 0, 0}));
  EXPECT_EQ(causes[1], (Causes{1, 2, 0, 1, 0, 4}));
}

// Two replicas of a one-stage model, rank 1 twice as slow: 4 micro-batches of 3 units more. Rank 0 waits 12 in the
// reduction.
TEST(Bubbles, ASlowReplicaIsAStraggler) {
  const auto causes = causes_of(result_of({.p = 1, .m = 4, .replicas = 2, .reduce = 2, .update = 1}, Fold::None, {1, 2}));
  EXPECT_EQ(causes[0][static_cast<std::size_t>(BubbleCause::Straggler)], 12 - 0);
  EXPECT_EQ(causes[0][static_cast<std::size_t>(BubbleCause::ExposedCommunication)], 2);
  EXPECT_EQ(causes[1], (Causes{0, 0, 0, 2, 0, 0}));
}

// The pieces tile the idle time exactly: they lie in gaps, do not overlap, and their sum is makespan minus busy.
TEST(Bubbles, PiecesSumToTheIdleTimeExactly) {
  std::mt19937 random(11);
  const auto pick = [&](int low, int high) { return std::uniform_int_distribution<int>(low, high)(random); };
  for (int round = 0; round < 150; ++round) {
    Pipeline pipeline = drawn_pipeline(random);
    pipeline.unit = 997;
    const Slow slow{pick(-1, pipeline.p * pipeline.replicas - 1), 3};
    const Result result = result_of(pipeline, slow.rank >= 0 ? Fold::None : Fold::Roles, slow);
    for (const Trace& trace : {result.trace, merged(result.trace)}) {
      const auto bubbles = find_bubbles(result.plan, trace, bind_spans(result.plan, trace));
      std::vector<Nanoseconds> sums(trace.classes.size());
      for (std::size_t b = 0; b < bubbles.size(); ++b) {
        EXPECT_LT(bubbles[b].begin, bubbles[b].end);
        sums[bubbles[b].who.index()] += bubbles[b].end - bubbles[b].begin;
        if (b > 0 && bubbles[b].who == bubbles[b - 1].who) {
          EXPECT_GE(bubbles[b].begin, bubbles[b - 1].end);
        }
      }
      for (std::size_t c = 0; c < sums.size(); ++c)
        EXPECT_EQ(sums[c], idle_of(result.plan, trace, {static_cast<std::int32_t>(c)})) << "round " << round << " class " << c;
    }
    EXPECT_EQ(causes_of(result, result.trace, 1), causes_of(result, merged(result.trace), 1)) << "round " << round;
  }
}

// Two stages, one micro-batch, transfers of 3: stage 0 waits from 1 to 10 for one thing, the gradient: 3 there, 3 of stage 1's work,
// 3 back. Cut by cause that is three pieces; it is one wait, and most of it is on the wire.
TEST(Bubbles, OneWaitIsOneBubble) {
  const Result result = result_of({.p = 2, .m = 1, .latency = 3});
  const auto pieces = find_bubbles(result.plan, result.trace, bind_spans(result.plan, result.trace));
  const auto whole = whole_bubbles(pieces);
  ASSERT_FALSE(whole.empty());
  EXPECT_EQ(whole.front().begin.value, 1'000'000);
  EXPECT_EQ(whole.front().end.value, 10'000'000);
  EXPECT_EQ(whole.front().cause, BubbleCause::ExposedCommunication);
  EXPECT_EQ(std::ranges::count(pieces, ClassId{0}, &Bubble::who), 3);
  EXPECT_EQ(std::ranges::count(whole, ClassId{0}, &Bubble::who), 1);
}

// 1F1B with transfers: a stage never has two bubbles without work between them, and no idle time is lost.
TEST(Bubbles, WholeBubblesAreSeparatedByWork) {
  const Result result = result_of({.p = 6, .m = 12, .latency = 1, .reduce = 2, .update = 1, .norm = true});
  const auto pieces = find_bubbles(result.plan, result.trace, bind_spans(result.plan, result.trace));
  const auto whole = whole_bubbles(pieces);
  Nanoseconds cut = {}, joined = {};
  for (const Bubble& piece : pieces) cut += piece.end - piece.begin;
  for (std::size_t b = 0; b < whole.size(); ++b) {
    joined += whole[b].end - whole[b].begin;
    if (b > 0 && whole[b].who == whole[b - 1].who) {
      EXPECT_GT(whole[b].begin, whole[b - 1].end);
    }
  }
  EXPECT_EQ(cut, joined);
  EXPECT_LT(whole.size(), pieces.size());
}

// (p-1)/(m+p-1) of a pipeline of 64 equal stages and 512 micro-batches is 63/575 = 10.957 %, all of it warm-up and
// drain.
TEST(Bubbles, TheTrillionParameterPipelineFillsAndDrainsForElevenPercent) {
  const Result result = result_of({.p = 64, .m = 512});
  std::int64_t pipeline = 0, all = 0;
  for (const Causes& causes : causes_of(result)) {
    pipeline += causes[0] + causes[1];
    for (const std::int64_t time : causes) all += time;
  }
  EXPECT_EQ(pipeline, all);
  EXPECT_EQ(all, 64 * 63 * 3);
  EXPECT_NEAR(static_cast<double>(all) * 1e6 / 64 / static_cast<double>(result.trace.makespan.value), 63.0 / 575, 1e-12);
}

}  // namespace
}  // namespace foreshard::bubbles_test
