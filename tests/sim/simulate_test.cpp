// The meaning of a plan (core/plan/plan.h), instruction by instruction. Times in milliseconds; bandwidths such that 1 ms of a link
// moves a round number of bytes.
#include "sim/simulate.h"

#include <gtest/gtest.h>

#include <tuple>

#include "core/base/error.h"
#include "tests/core/network_clusters.h"
#include "tests/sim/plans.h"

namespace foreshard::simulate_test {
namespace {

using namespace playing;

// GPUs below one switch, 100 GB/s per port and direction: 100 MB per millisecond.
Cluster switched(int gpus = 8) { return lossless_cluster_of(switched_shape({.gpus = gpus, .nvlink = 100e9}), 1); }
constexpr std::int64_t kMsOfBytes = 100'000'000;

Result op_by_op(const Plan& plan, const Cluster& cluster = switched()) {
  return simulate(plan, cluster, {.granularity = Granularity::Op, .folding = Folding::None});
}

void expect_span(const Span& span, double ready, double begin, double end) {
  EXPECT_DOUBLE_EQ(milliseconds(span.ready), ready);
  EXPECT_DOUBLE_EQ(milliseconds(span.begin), begin);
  EXPECT_DOUBLE_EQ(milliseconds(span.end), end);
}

//   stream 0: a a a . . d      `after` joins streams, nothing waits at the border of an action
//   stream 1: b b b b b
TEST(Simulate, StreamsRunInIssueOrderAndAfterJoinsThem) {
  Line line(1);
  line.of.issue(line.role, {compute(0, 3 * kMs), compute(1, 5 * kMs)});
  line.of.issue(line.role, {mark(1), compute(0, kMs).after({0}), host(2, 2 * kMs)});
  const Result result = op_by_op(line.of.plan());
  expect_span(span_of(result, 0, 0, 0), 0, 0, 3);
  expect_span(span_of(result, 0, 0, 1), 0, 0, 5);
  expect_span(span_of(result, 0, 1, 0), 5, 5, 5);
  expect_span(span_of(result, 0, 1, 1), 5, 5, 6);
  expect_span(span_of(result, 0, 1, 2), 0, 0, 2);
  EXPECT_EQ(result.trace.makespan.value, 6 * kMs);
  EXPECT_EQ(result.makespan_s, 6e-3);
  EXPECT_EQ(result.plan, line.of.plan());
}

// A wait binds to the newest record issued before it, by (event, slot) with slots given as arguments; the first wait of a
// run has none and is satisfied. Records: action 0 slot 0 ends at 4, action 1 slot 1 ends at 5, action 2 slot 0 at 9.
TEST(Simulate, WaitBindsToTheNewestEarlierRecordOfItsSlot) {
  Line line(1, 3);
  line.of.plan().roles[0].events.push_back({"e", 2});
  const Slot slot{ParamId{0}};
  const SegmentId makes = line.of.segment("makes", {compute(0, 4 * kMs).records({0}, slot)}, 1);
  const SegmentId brief = line.of.segment("brief", {compute(0, kMs).records({0}, slot)}, 1);
  const SegmentId uses = line.of.segment("uses", {compute(1, kMs).waits({0}, slot)}, 1);
  line.of.issue(line.role, uses, {0});   // nothing recorded yet
  line.of.issue(line.role, makes, {0});  // ends at 4
  line.of.issue(line.role, brief, {1});  // ends at 5
  line.of.issue(line.role, uses, {1});   // waits for 5
  line.of.issue(line.role, makes, {0});  // ends at 9
  line.of.issue(line.role, uses, {0});   // waits for 9, not for 4
  const Result result = op_by_op(line.of.plan());
  expect_span(span_of(result, 0, 0, 0), 0, 0, 1);
  expect_span(span_of(result, 0, 3, 0), 5, 5, 6);
  expect_span(span_of(result, 0, 5, 0), 9, 9, 10);
}

// Both sides have to be there; setup time, then bytes: 2 + 0.5 + 3 = 5.5. `ready` of the receiver is when it came.
TEST(Simulate, ExchangeIsARendezvous) {
  PlanOf of;
  const RoleId a = of.role("a", {}), b = of.role("b", {});
  of.issue(a, {compute(0, 2 * kMs), send(0, {1}, 3 * kMsOfBytes, kMs / 2)});
  of.issue(b, {receive(1, {-1}, 3 * kMsOfBytes, kMs / 2), compute(0, kMs).after({0})});
  const Result result = op_by_op(of.plan());
  expect_span(span_of(result, 0, 0, 1), 2, 2, 5.5);
  expect_span(span_of(result, 1, 0, 0), 0, 2, 5.5);
  expect_span(span_of(result, 1, 0, 1), 5.5, 5.5, 6.5);
}

// The larger of the two setup times counts, and wire bytes are bytes times the factor of the cost.
TEST(Simulate, ExchangeTakesTheLargerSetupAndTheWireFactor) {
  PlanOf of;
  const RoleId a = of.role("a", {}), b = of.role("b", {});
  of.issue(a, {send(0, {1}, kMsOfBytes, kMs).wire(1.25)});
  of.issue(b, {receive(0, {-1}, kMsOfBytes, 2 * kMs).wire(1.25)});
  expect_span(span_of(op_by_op(of.plan()), 0, 0, 0), 0, 0, 3.25);
}

// Two tags are two channels: the receiver takes "y" first although the sender issues "x" first.
TEST(Simulate, TagsPairSendsAndReceivesAcrossStreams) {
  PlanOf of;
  const RoleId a = of.role("a", {}), b = of.role("b", {});
  of.issue(a, {send(0, {1}, kMsOfBytes, 0, "x"), send(1, {1}, kMsOfBytes, 0, "y")});
  of.issue(b, {receive(0, {-1}, kMsOfBytes, 0, "y"), receive(0, {-1}, kMsOfBytes, 0, "x")});
  const Result result = op_by_op(of.plan());
  expect_span(span_of(result, 1, 0, 0), 0, 0, 1);
  expect_span(span_of(result, 0, 0, 0), 0, 1, 2);
}

// Within a channel sends and receives pair in issue order, not in the order in which they get ready: the second send is
// ready at 0, the first at 3; the receives take them as first and second.
TEST(Simulate, AChannelPairsInIssueOrder) {
  PlanOf of;
  const RoleId a = of.role("a", {}), b = of.role("b", {});
  of.issue(a, {compute(0, 3 * kMs), send(0, {1}, kMsOfBytes), send(1, {1}, 4 * kMsOfBytes)});
  of.issue(b, {receive(0, {-1}, kMsOfBytes), receive(1, {-1}, 4 * kMsOfBytes)});
  const Result result = op_by_op(of.plan());
  // The long one runs alone until 3 (300 of 400 MB); then they share: 100 MB each take 2 ms.
  expect_span(span_of(result, 1, 0, 1), 0, 0, 5);
  expect_span(span_of(result, 1, 0, 0), 0, 3, 5);
}

// A ring shift in one step: everybody sends and receives at once, over different ports and directions.
TEST(Simulate, ATwoWayExchangeEndsWhenBothWaysEnded) {
  Line line(4);
  line.of.issue(line.role, {both(0, line.next(1), line.next(-1), 2 * kMsOfBytes, kMs)});
  for (const Folding folding : {Folding::None, Folding::Full}) {
    const Result result = simulate(line.of.plan(), switched(), {.granularity = Granularity::Op, .folding = folding});
    expect_span(span_of(result, 3, 0, 0), 0, 0, 3);
  }
}

// With two ranks the neighbour to the right is the neighbour to the left.
TEST(Simulate, NeighboursOnAnAxisOfTwoAreOnePeer) {
  Line line(2);
  line.of.issue(line.role, {send(0, line.next(1), kMsOfBytes), receive(1, line.next(-1), kMsOfBytes)});
  line.of.issue(line.role, {send(0, line.next(-1), kMsOfBytes), receive(1, line.next(1), kMsOfBytes)});
  const Result result = op_by_op(line.of.plan());
  expect_span(span_of(result, 0, 1, 0), 1, 1, 2);
}

// One half ends before the other begins: rank 1 has its data at 1 ms and waits for the rank that it sends to until 5.
TEST(Simulate, HalvesOfAnExchangeMeetOnTheirOwn) {
  PlanOf of;
  const RoleId a = of.role("a", {}), b = of.role("b", {}), c = of.role("c", {});
  of.issue(a, {send(0, {1}, kMsOfBytes)});
  of.issue(b, {both(0, {1}, {-1}, kMsOfBytes)});
  of.issue(c, {compute(0, 5 * kMs), receive(0, {-1}, kMsOfBytes)});
  const Result result = op_by_op(of.plan());
  expect_span(span_of(result, 0, 0, 0), 0, 0, 1);
  expect_span(span_of(result, 1, 0, 0), 0, 5, 6);
}

// A ring all-reduce of 4 ranks moves 1.5 of its bytes over every port, after its setup, when the last one (7 ms) is there.
TEST(Simulate, CollectiveBeginsWhenTheLastMemberIsThere) {
  PlanOf of;
  const AxisId dp = of.axis(DenseKind::Data, 2);
  const RoleId a = of.role("a", {dp}), b = of.role("b", {dp});
  const GroupId all = of.group({dp}, {a, b});
  of.issue(a, {compute(0, 4 * kMs), collective(0, CollectiveKind::AllReduce, all, 2 * kMsOfBytes, kMs)});
  of.issue(b, {compute(0, 7 * kMs), collective(0, CollectiveKind::AllReduce, all, 2 * kMsOfBytes, kMs)});
  for (const Folding folding : {Folding::None, Folding::Full}) {
    const Result result = simulate(of.plan(), switched(), {.granularity = Granularity::Op, .folding = folding});
    expect_span(span_of(result, 1, 0, 1), 4, 7, 11);
    expect_span(span_of(result, 2, 0, 1), 7, 7, 11);
  }
}

TEST(Simulate, ACollectiveOfOneMemberIsItsSetup) {
  Line line(1);
  line.of.issue(line.role, {collective(0, CollectiveKind::AllReduce, line.all, kMsOfBytes, kMs)});
  expect_span(span_of(op_by_op(line.of.plan()), 0, 0, 0), 0, 0, 1);
}

TEST(Simulate, NothingToMoveTakesTheSetupTime) {
  PlanOf of;
  const RoleId a = of.role("a", {}), b = of.role("b", {});
  of.issue(a, {send(0, {1}, 0, kMs), send(0, {1}, 0)});
  of.issue(b, {receive(0, {-1}, 0, kMs), receive(0, {-1}, 0)});
  const Result result = op_by_op(of.plan());
  expect_span(span_of(result, 0, 0, 0), 0, 0, 1);
  expect_span(span_of(result, 0, 0, 1), 1, 1, 1);
}

// Two ranks on one device (lanes of a server): bytes do not leave it.
TEST(Simulate, RanksOfOneDeviceCrossNoLink) {
  PlanOf of;
  const RoleId a = of.role("a", {}), b = of.role("b", {});
  of.issue(a, {send(0, {1}, kMsOfBytes, kMs)});
  of.issue(b, {receive(0, {-1}, kMsOfBytes, kMs)});
  of.plan().placement.explicit_devices = {{3}, {3}};
  expect_span(span_of(op_by_op(of.plan()), 0, 0, 0), 0, 0, 1);
}

// Copies cross the PCIe links (32 GB/s); to the device and from it at once, each at full rate; a copy on the device and one
// between kinds of host memory take what their cost says.
TEST(Simulate, CopiesUseTheLinksToTheHost) {
  PlanOf of;
  const RoleId a = of.role("a", {});
  const int device = of.buffer(a, Space::Device).value, pinned = of.buffer(a, Space::PinnedHost).value;
  const int pageable = of.buffer(a, Space::PageableHost).value;
  of.issue(a, {copy(0, device, pinned, 64'000'000), copy(1, pinned, device, 96'000'000, kMs),
               copy(2, device, device, 1 << 30, kMs), copy(3, pageable, pinned, 1 << 30, 2 * kMs)});
  const Result result = op_by_op(of.plan());
  expect_span(span_of(result, 0, 0, 0), 0, 0, 2);
  expect_span(span_of(result, 0, 0, 1), 0, 0, 4);
  expect_span(span_of(result, 0, 0, 2), 0, 0, 1);
  expect_span(span_of(result, 0, 0, 3), 0, 0, 2);
}

TEST(Simulate, LinksReportTheirBytesAndBusyTime) {
  PlanOf of;
  const RoleId a = of.role("a", {}), b = of.role("b", {});
  of.issue(a, {send(0, {1}, kMsOfBytes, kMs), compute(0, 3 * kMs), send(0, {1}, 2 * kMsOfBytes, kMs)});
  of.issue(b, {receive(0, {-1}, kMsOfBytes, kMs), receive(0, {-1}, 2 * kMsOfBytes, kMs)});
  for (const Folding folding : {Folding::None, Folding::Full}) {
    const Result result = simulate(of.plan(), switched(), {.folding = folding});
    double bytes = 0;
    for (const LinkClass& link : result.trace.links) {
      EXPECT_DOUBLE_EQ(link.bytes, 3.0 * kMsOfBytes) << link.name;
      EXPECT_NEAR(link.busy.value, 3e-3, 1e-15) << link.name;
      bytes += link.bytes * static_cast<double>(link.links.size());
    }
    EXPECT_DOUBLE_EQ(bytes, 2 * 3.0 * kMsOfBytes);  // out of one port, into another
  }
}

TEST(Simulate, SpansAreOrderedAndProgressReachesOne) {
  Line line(4);
  for (int i = 0; i < 50; ++i)
    line.of.issue(line.role, {compute(1, kMs), compute(0, kMs), both(2, line.next(), line.next(-1), kMsOfBytes)});
  double fraction = 0;
  const Result result = simulate(line.of.plan(), switched(),
                                 {.granularity = Granularity::Op, .folding = Folding::None, .progress = [&](double f) {
                                    EXPECT_GE(f, fraction);
                                    fraction = f;
                                  }});
  EXPECT_EQ(fraction, 1.0);
  ASSERT_EQ(result.trace.spans.size(), 600u);
  for (std::size_t i = 1; i < result.trace.spans.size(); ++i) {
    const Span &a = result.trace.spans[i - 1], &b = result.trace.spans[i];
    EXPECT_LE(std::tuple(a.who, a.stream, a.begin), std::tuple(b.who, b.stream, b.begin));
    EXPECT_TRUE(a.who != b.who || a.stream != b.stream || a.end <= b.begin);
  }
}

TEST(Simulate, CancelEndsTheRun) {
  Line line(1);
  for (int i = 0; i < 100; ++i) line.of.issue(line.role, {compute(0, kMs)});
  std::atomic<bool> cancel = false;
  SimulateOptions options{.cancel = &cancel, .progress = [&](double f) { cancel = f > 0.5; }};
  try {
    simulate(line.of.plan(), switched(), options);
    FAIL() << "was not cancelled";
  } catch (const Error& error) {
    EXPECT_STREQ(error.what(), "cancelled");
  }
  cancel = false;
  EXPECT_EQ(simulate(line.of.plan(), switched()).trace.makespan.value, 100 * kMs);
}

// a sends x then y, b receives y then x, each on one stream: both wait for ever.
TEST(Simulate, RanksThatBlockEachOtherAreNamed) {
  PlanOf of;
  const RoleId a = of.role("first", {}), b = of.role("second", {});
  of.issue(a, {send(0, {1}, 1, 0, "x"), send(0, {1}, 1, 0, "y")});
  of.issue(b, {receive(0, {-1}, 1, 0, "y"), receive(0, {-1}, 1, 0, "x")});
  try {
    op_by_op(of.plan());
    FAIL() << "came to an end";
  } catch (const Error& error) {
    const std::string text = error.what();
    EXPECT_NE(text.find("role 'first' rank 0 at action 0 'send'"), std::string::npos) << text;
    EXPECT_NE(text.find("role 'second' rank 1 at action 0 'receive'"), std::string::npos) << text;
  }
}

// 10 ms of compute; a transfer that takes a quarter of the SMs runs from 2 ms (its sender's) for 4 ms: 2 + 4 * 0.75 = 5 ms
// of work are done at 6 ms, the other 5 end at 11.
TEST(Simulate, CommunicationKernelsSlowComputeExactly) {
  PlanOf of;
  const RoleId a = of.role("a", {}), b = of.role("b", {});
  of.issue(a, {compute(0, 10 * kMs), receive(1, {1}, 3 * kMsOfBytes, kMs).takes(0.25)});
  of.issue(b, {compute(0, 2 * kMs), send(0, {-1}, 3 * kMsOfBytes, kMs).takes(0.25), compute(0, kMs)});
  const Result result = op_by_op(of.plan());
  expect_span(span_of(result, 0, 0, 0), 0, 0, 11);
  expect_span(span_of(result, 0, 0, 1), 0, 2, 6);
  expect_span(span_of(result, 1, 0, 2), 6, 6, 7);
}

// Two transfers at once take the sum of their shares: 0.25 from 0 to 4, another 0.5 from 0 to 2 (both in turn on different
// ports). 2 * 0.25 + 2 * 0.75 = 2 ms done at 4 ms, 4 left: 8 ms.
TEST(Simulate, SharesOfSeveralKernelsAddUp) {
  PlanOf of;
  const RoleId a = of.role("a", {}), b = of.role("b", {}), c = of.role("c", {});
  of.issue(a, {compute(0, 6 * kMs), receive(1, {1}, 4 * kMsOfBytes).takes(0.25), send(2, {2}, 2 * kMsOfBytes).takes(0.5)});
  of.issue(b, {send(1, {-1}, 4 * kMsOfBytes)});
  of.issue(c, {receive(1, {-2}, 2 * kMsOfBytes)});
  expect_span(span_of(op_by_op(of.plan()), 0, 0, 0), 0, 0, 8);
}

TEST(Simulate, StragglersSlowTheirComputeAndWhoWaitsForThem) {
  Line line(4);
  line.of.issue(line.role, {compute(0, 4 * kMs), collective(0, CollectiveKind::AllGather, line.all, 4 * kMsOfBytes, kMs)});
  const Result result = simulate(line.of.plan(), switched(), {.folding = Folding::Full, .stragglers = {{{2}, 1.5}}});
  ASSERT_EQ(result.trace.classes.size(), 2u);
  EXPECT_EQ(result.trace.classes[0].members, (std::vector<RankId>{{0}, {1}, {3}}));
  EXPECT_EQ(result.trace.classes[1].members, (std::vector<RankId>{{2}}));
  expect_span(span_of(result, 0, 0, 0), 0, 0, 4);
  expect_span(span_of(result, 2, 0, 0), 0, 0, 6);
  expect_span(span_of(result, 0, 0, 1), 4, 6, 10);  // 1 + 3/4 of 4 ms
}

}  // namespace
}  // namespace foreshard::simulate_test
