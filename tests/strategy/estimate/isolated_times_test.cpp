// Isolated times of collectives and transfers, and how kinds of traffic share links.
#include "strategy/estimate/isolated_times.h"

#include <gtest/gtest.h>

#include "tests/core/network_clusters.h"

namespace foreshard::isolated_times_test {
namespace {

constexpr RoleId kRole{0};
constexpr double kNvLink = 300e9;

// Four ranks along one axis, on the four GPUs of a node with NVLinks of 300 GB/s per direction and GPU to a switch.
class IsolatedTimesTest : public testing::Test {
 protected:
  Plan plan;
  Cluster cluster = lossless_cluster_of(switched_shape({.gpus = 4, .per_switch = 2, .nics = 2, .nvlink = kNvLink}), 1);

  IsolatedTimesTest() {
    plan.axes = {{.name = "dp", .size = 4}};
    plan.groups = {{.name = "all", .over = {AxisId{0}}}};
    plan.roles = {{.name = "role", .device_kind = "X", .axes = {AxisId{0}}}};
  }
};

Instruction collective(CollectiveKind kind, std::int64_t bytes) {
  return {.what = Collective{.kind = kind, .group = {0}, .bytes = {bytes}}};
}
Instruction shifted(std::int64_t bytes, int shift, bool sends) {
  Exchange what{.bytes = {bytes}};
  (sends ? what.to : what.from) = Peer{.axes = {AxisId{0}}, .shift = shift};
  return {.what = what};
}

}  // namespace

// A ring of four: every GPU sends 2 * 3/4 of the bytes in an all-reduce, 3/4 in an all-gather.
TEST_F(IsolatedTimesTest, RingsSendTheirShares) {
  IsolatedTimes times(plan, cluster);
  EXPECT_NEAR(times.on_links(kRole, collective(CollectiveKind::AllReduce, 4'000'000), {}), 1.5 * 4e6 / kNvLink, 1e-12);
  EXPECT_NEAR(times.on_links(kRole, collective(CollectiveKind::AllGather, 4'000'000), {}), 0.75 * 4e6 / kNvLink, 1e-12);
  // 5 us before the first byte, and a protocol that sends 10 % more.
  const Cost cost{.busy = {5000}, .wire_factor = 1.1};
  EXPECT_NEAR(times.duration(kRole, collective(CollectiveKind::AllReduce, 4'000'000), cost), 5e-6 + 1.1 * 1.5 * 4e6 / kNvLink,
              1e-12);
}

// One kind for every size; a collective of another kind is another one. The rate is that of the size, not of the link.
TEST_F(IsolatedTimesTest, BytesDoNotMakeAKind) {
  IsolatedTimes times(plan, cluster);
  const int sum = times.kind(kRole, collective(CollectiveKind::AllReduce, 1000)),
            gather = times.kind(kRole, collective(CollectiveKind::AllGather, 1000));
  EXPECT_EQ(times.kind(kRole, collective(CollectiveKind::AllReduce, 77'000)), sum);
  EXPECT_NE(gather, sum);
  EXPECT_NEAR(times.rate(sum), kNvLink / 1.5, 1);
  EXPECT_NEAR(times.per_byte(gather), 0.75 / kNvLink, 1e-20);
  EXPECT_EQ(times.per_byte(-1), 0);
  const Instruction compute{.what = Compute{}};
  EXPECT_EQ(times.kind(kRole, compute), -1);
}

// To the next rank, all at once: each crosses its own links. The receiver counts nothing.
TEST_F(IsolatedTimesTest, TransfersCountAtTheSender) {
  IsolatedTimes times(plan, cluster);
  EXPECT_NEAR(times.duration(kRole, shifted(3'000'000, 1, true), {}), 3e6 / kNvLink, 1e-12);
  EXPECT_EQ(times.duration(kRole, shifted(3'000'000, -1, false), {.busy = {700}}), 0);
}

// Two kinds on the same links: what they take of the bandwidth adds up to all of it, and a kind twice has half each.
TEST_F(IsolatedTimesTest, KindsShareLinks) {
  IsolatedTimes times(plan, cluster);
  const int sum = times.kind(kRole, collective(CollectiveKind::AllReduce, 1000)),
            gather = times.kind(kRole, collective(CollectiveKind::AllGather, 1000));
  EXPECT_TRUE(times.meet(sum, gather));
  EXPECT_EQ(times.speeds({sum}), std::vector<double>{1});
  const std::vector<double> both = times.speeds({sum, gather}), twice = times.speeds({sum, sum});
  EXPECT_NEAR(both[0] + both[1], 1, 1e-12);
  EXPECT_NEAR(twice[0], 0.5, 1e-12);
  EXPECT_NEAR(twice[1], 0.5, 1e-12);
  double most = 0;
  for (const IsolatedTimes::Crossing& crossing : times.crossed(sum)) {
    EXPECT_LT(crossing.which, times.crossings());
    most = std::max(most, crossing.share);
  }
  EXPECT_NEAR(most, 1, 1e-12);  // isolated, it takes all of its slowest link
}

// Groups of neighbours, two at once: each has its own links, and is as fast as one group of two.
TEST_F(IsolatedTimesTest, InstancesOfAGroupRunAtOnce) {
  plan.axes = {{.name = "dp", .size = 2}, {.name = "tp", .dense = DenseKind::Tensor, .size = 2}};
  plan.roles[0].axes = {AxisId{0}, AxisId{1}};
  plan.groups = {{.name = "tensor", .over = {AxisId{1}}}};
  IsolatedTimes times(plan, cluster);
  EXPECT_NEAR(times.on_links(kRole, collective(CollectiveKind::AllReduce, 1'000'000), {}), 1e6 / kNvLink, 1e-12);
}

}  // namespace foreshard::isolated_times_test
