// Granularity: what is merged into one step, what must not be, and that merging does not move anything.
#include <gtest/gtest.h>

#include <random>

#include "sim/simulate.h"
#include "tests/core/network_clusters.h"
#include "tests/sim/plans.h"

namespace foreshard::granularity_test {
namespace {

using namespace playing;

constexpr std::int64_t kMsOfBytes = 100'000'000;
Cluster switched(int gpus = 8) { return lossless_cluster_of(switched_shape({.gpus = gpus, .nvlink = 100e9}), 1); }

Result play(const Plan& plan, Granularity granularity) { return simulate(plan, switched(), {.granularity = granularity}); }

// (first instruction, count, begin, end in ms) of the spans of class 0, in the order of the trace.
using Row = std::tuple<int, int, double, double>;
std::vector<Row> rows(const Result& result) {
  std::vector<Row> all;
  for (const Span& span : result.trace.spans)
    if (span.who.value == 0) all.emplace_back(span.instruction, span.count, milliseconds(span.begin), milliseconds(span.end));
  return all;
}
using Rows = std::vector<Row>;

TEST(Granularity, LayerMergesComputesAndMarksOfOneLayer) {
  Line line(1);
  line.of.issue(line.role,
                {compute(0, kMs).layer(0), mark(0).layer(0), compute(0, 2 * kMs).layer(0), compute(0, 3 * kMs).layer(1)});
  EXPECT_EQ(rows(play(line.of.plan(), Granularity::Op)), (Rows{{0, 1, 0, 1}, {1, 1, 1, 1}, {2, 1, 1, 3}, {3, 1, 3, 6}}));
  EXPECT_EQ(rows(play(line.of.plan(), Granularity::Layer)), (Rows{{0, 3, 0, 3}, {3, 1, 3, 6}}));
  EXPECT_EQ(rows(play(line.of.plan(), Granularity::Stage)), (Rows{{0, 4, 0, 6}}));
}

// Somebody outside can tell: an `after` on the second, a record of the fourth, a wait of the sixth instruction.
TEST(Granularity, WhatOthersNoticeEndsAStep) {
  Line line(1, 2, 2);
  line.of.issue(line.role, {compute(0, kMs), compute(0, kMs), compute(1, kMs).after({1}), compute(0, kMs),
                            compute(0, kMs).records({0}), compute(0, kMs), compute(0, kMs).waits({1}), compute(0, kMs)});
  for (const Granularity granularity : {Granularity::Layer, Granularity::Stage})
    EXPECT_EQ(rows(play(line.of.plan(), granularity)),
              (Rows{{0, 2, 0, 2}, {3, 2, 2, 4}, {5, 1, 4, 5}, {6, 2, 5, 7}, {2, 1, 2, 3}}));
}

TEST(Granularity, OnlyComputesAndMarksAreMerged) {
  Line line(1);
  line.of.issue(line.role, {compute(0, kMs), host(0, kMs), compute(0, kMs)});
  EXPECT_EQ(rows(play(line.of.plan(), Granularity::Stage)).size(), 3u);
}

// Four ranks, all-reduce of 200 MB: 1.5 * 2 = 3 ms. At stage granularity it comes along with the computes around it.
TEST(Granularity, StageAbsorbsCollectivesOfTwinsOnTheirOwnLinks) {
  Line line(4);
  line.of.issue(line.role, {compute(0, kMs), collective(0, CollectiveKind::AllReduce, line.all, 2 * kMsOfBytes, kMs),
                            compute(0, 2 * kMs)});
  EXPECT_EQ(rows(play(line.of.plan(), Granularity::Layer)), (Rows{{0, 1, 0, 1}, {1, 1, 1, 5}, {2, 1, 5, 7}}));
  for (const Folding folding : {Folding::None, Folding::Full}) {
    const Result stage = simulate(line.of.plan(), switched(), {.granularity = Granularity::Stage, .folding = folding});
    EXPECT_EQ(rows(stage), (Rows{{0, 3, 0, 7}}));
    for (const LinkClass& link : stage.trace.links) {
      EXPECT_DOUBLE_EQ(link.bytes, 3.0 * kMsOfBytes);
      EXPECT_NEAR(link.busy.value, 3e-3, 1e-15);
    }
  }
}

// Not merged: members that are not alike (rank 1 is slow), and links that somebody else uses meanwhile.
TEST(Granularity, StageKeepsCollectivesThatOthersCanDisturb) {
  Line line(4);
  line.of.issue(line.role, {compute(0, 2 * kMs), collective(0, CollectiveKind::AllReduce, line.all, 2 * kMsOfBytes)});
  const Result slow = simulate(line.of.plan(), switched(), {.granularity = Granularity::Stage, .stragglers = {{{1}, 2}}});
  EXPECT_EQ(rows(slow), (Rows{{0, 1, 0, 2}, {1, 1, 4, 7}}));

  Line busy(4);
  busy.of.issue(busy.role, {compute(0, kMs), collective(0, CollectiveKind::AllReduce, busy.all, 2 * kMsOfBytes),
                            both(1, busy.next(), busy.next(-1), 4 * kMsOfBytes)});
  // The exchange has 1 ms alone (1 of 4), then half: the ring takes 6 ms and the exchange has its 3 left done at 7.
  EXPECT_EQ(rows(play(busy.of.plan(), Granularity::Stage)), (Rows{{0, 1, 0, 1}, {1, 1, 1, 7}, {2, 1, 0, 7}}));
}

// A kernel that takes half of the compute units for 3 ms slows the computes of a merged step, not the collective in it: the first
// compute has 1.5 of its 4 ms done at 3 ms and ends at 5.5, the collective at 9.5, the second compute at 13.5. Were the computes spread evenly
// over the step, it would end at 13.2.
TEST(Granularity, SharesSlowOnlyTheComputesOfAMergedStep) {
  Line line(4);
  line.of.issue(line.role,
                {compute(0, 4 * kMs), collective(0, CollectiveKind::AllReduce, line.all, 2 * kMsOfBytes, kMs),
                 compute(0, 4 * kMs), collective(1, CollectiveKind::AllReduce, line.of.group({}), 0, 3 * kMs).takes(0.5)});
  EXPECT_EQ(rows(play(line.of.plan(), Granularity::Stage)), (Rows{{0, 3, 0, 13.5}, {3, 1, 0, 3}}));
  EXPECT_EQ(rows(play(line.of.plan(), Granularity::Op)),
            (Rows{{0, 1, 0, 5.5}, {1, 1, 5.5, 9.5}, {2, 1, 9.5, 13.5}, {3, 1, 0, 3}}));
}

// Kernels of random lengths and shares on two other streams, beside random chains of computes and collectives: a merged step ends when
// the last of its parts would. Seed 5.
TEST(Granularity, StageEqualsOpBesideKernelsThatComeAndGo) {
  std::mt19937 random(5);
  const auto some = [&](int most) { return std::uniform_int_distribution<int>(1, most)(random); };
  for (int round = 0; round < 60; ++round) {
    Line line(4, 3);
    const GroupId alone = line.of.group({});
    for (int action = 0; action < 3; ++action) {
      std::vector<Item> items;
      for (int i = some(8); i-- > 0;) {
        items.push_back(compute(0, some(4'000) * kUs));
        if (some(3) > 1)
          items.push_back(collective(0, CollectiveKind::AllReduce, line.all, some(3) * kMsOfBytes, some(500) * kUs));
      }
      for (const int stream : {1, 2})
        for (int i = some(5); i-- > 0;)
          items.push_back(collective(stream, CollectiveKind::AllReduce, alone, 0, some(3'000) * kUs).takes(0.1 * some(7)));
      line.of.issue(line.role, std::move(items));
    }
    const Result op = play(line.of.plan(), Granularity::Op), stage = play(line.of.plan(), Granularity::Stage);
    ASSERT_LT(stage.trace.spans.size(), op.trace.spans.size());
    EXPECT_NEAR(stage.makespan_s, op.makespan_s, 1e-12 * op.makespan_s) << round;
    for (const Span& merged : stage.trace.spans) {
      const int last = merged.instruction + merged.count - 1;
      EXPECT_LE(std::abs(merged.end.value - span_of(op, merged.who.value, merged.action, last).end.value), 1) << round;
    }
  }
}

// Stage equals op where nothing overlaps: same makespan to the last digits, same ends of what is merged.
TEST(Granularity, StageEqualsOpWhereNothingOverlaps) {
  PlanOf of;
  const AxisId tp = of.axis(DenseKind::Tensor, 4);
  const RoleId a = of.role("a", {tp}), b = of.role("b", {tp});
  const GroupId tensor = of.group({tp});
  const auto layers = [&](std::vector<Item>& items, std::int64_t us) {
    for (int l = 0; l < 3; ++l) {
      items.push_back(compute(0, us * kUs + 7).layer(l));
      items.push_back(collective(0, CollectiveKind::AllGather, tensor, 12'345'678, 5 * kUs).layer(l));
      items.push_back(compute(0, 3 * us * kUs).layer(l));
      items.push_back(collective(0, CollectiveKind::ReduceScatter, tensor, 12'345'678, 5 * kUs).layer(l));
    }
  };
  std::vector<Item> first, second;
  layers(first, 100);
  first.push_back(send(0, {1}, 1'000'000, 9 * kUs));
  second.push_back(receive(0, {-1}, 1'000'000, 9 * kUs));
  layers(second, 170);
  const SegmentId from = of.segment("from", std::move(first)), to = of.segment("to", std::move(second));
  for (int i = 0; i < 5; ++i) of.issue(a, from), of.issue(b, to);
  const Result op = play(of.plan(), Granularity::Op), layer = play(of.plan(), Granularity::Layer),
               stage = play(of.plan(), Granularity::Stage);
  EXPECT_NEAR(stage.makespan_s, op.makespan_s, 1e-12 * op.makespan_s);
  EXPECT_NEAR(layer.makespan_s, op.makespan_s, 1e-12 * op.makespan_s);
  EXPECT_LT(stage.trace.spans.size(), layer.trace.spans.size());
  for (int action = 0; action < 5; ++action) {
    EXPECT_LE(std::abs(span_of(stage, 0, action, 12).end.value - span_of(op, 0, action, 12).end.value), 1);
    EXPECT_LE(std::abs(span_of(stage, 4, action, 1).end.value - span_of(op, 4, action, 12).end.value), 1);
  }
  EXPECT_LT(stage.engine_events, layer.engine_events);
}

}  // namespace
}  // namespace foreshard::granularity_test
