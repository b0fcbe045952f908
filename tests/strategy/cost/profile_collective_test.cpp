// Which measurement of collectives answers, and what lies between two of them.
#include "strategy/cost/profile_collective.h"

#include <gtest/gtest.h>

#include "core/cluster_file/cluster_file.h"
#include "core/network/network.h"
#include "strategy/cost/plan_costs.h"
#include "tests/strategy/support_alone.h"

namespace foreshard::profile_collective_test {
namespace {

using enum MeasuredLink;

CollectiveMeasure at(MeasuredLink link, int ranks, int nodes, std::int64_t bytes, double seconds,
                     MeasuredAlgorithm algorithm = MeasuredAlgorithm::Automatic) {
  return {.algorithm = algorithm, .link = link, .ranks = ranks, .nodes = nodes, .bytes = {bytes}, .time = {seconds}};
}
Collective reduce_of(std::int64_t bytes, Algorithm algorithm = Algorithm::Ring) {
  return {.algorithm = algorithm, .group = {0}, .bytes = {bytes}};
}
double total(const std::optional<MeasuredTime>& time) { return time ? time->latency.value + time->wire.value : -1; }

// 10 us at 1000 bytes, 12 at 3000, 40 at 10000.
MachineProfile one_curve() {
  return {.collectives = {at(NvLink, 4, 1, 1000, 10e-6), at(NvLink, 4, 1, 3000, 12e-6), at(NvLink, 4, 1, 10000, 40e-6)}};
}

// The line between two sizes; its slope is what the wire takes: 1 ns a byte between the first two, 4 ns after them.
TEST(ProfiledCollective, IsLinearBetweenSizes) {
  const GroupPlace place{.ranks = 4};
  const auto time = [&](std::int64_t bytes) { return *profiled_collective(one_curve(), reduce_of(bytes), place); };
  EXPECT_NEAR(time(2000).latency.value, 9e-6, 1e-15);
  EXPECT_NEAR(time(2000).wire.value, 2e-6, 1e-15);
  EXPECT_NEAR(total(time(3000)), 12e-6, 1e-15);
  EXPECT_NEAR(total(time(6500)), 26e-6, 1e-15);
  EXPECT_NEAR(time(6500).latency.value, 0, 1e-15);  // 4 ns a byte make 26 us
  EXPECT_NEAR(total(time(20000)), 80e-6, 1e-15);    // the line goes on: 40 + 10000 * 4 ns
  EXPECT_NEAR(total(time(500)), 9.5e-6, 1e-15);
  EXPECT_NEAR(total(time(1)), 9.001e-6, 1e-15);
  EXPECT_FALSE(profiled_collective(one_curve(), reduce_of(0), place));
}

// A large size that took less than a smaller one does not make the next ones free: the line from the first one counts.
TEST(ProfiledCollective, OneBadSizeDoesNotLeadAstray) {
  const MachineProfile profile{
      .collectives = {at(NvLink, 2, 1, 1000, 10e-6), at(NvLink, 2, 1, 2000, 30e-6), at(NvLink, 2, 1, 3000, 20e-6)}};
  const auto time = profiled_collective(profile, reduce_of(5000), {.ranks = 2});
  EXPECT_NEAR(total(time), 30e-6, 1e-15);  // 20 us + 2000 * (20 - 10) us / 2000
  const MachineProfile single{.collectives = {at(NvLink, 2, 1, 1000, 10e-6)}};
  EXPECT_NEAR(total(profiled_collective(single, reduce_of(3000), {.ranks = 2})), 30e-6, 1e-15);
}

// Groups of a ring with 1 us a step and 2 GB/s: any other size of group, between, below and above, has the ring's time.
TEST(ProfiledCollective, OtherGroupSizesFollowARing) {
  const auto ring = [](int n, double bytes) { return 2.0 * (n - 1) * (1e-6 + bytes / n / 2e9); };
  MachineProfile profile;
  for (const int n : {4, 16})
    for (const std::int64_t bytes : {1 << 12, 1 << 16, 1 << 20})
      profile.collectives.push_back(at(NvLink, n, 1, bytes, ring(n, static_cast<double>(bytes))));
  for (const int n : {2, 3, 4, 8, 16, 64})
    for (const std::int64_t bytes : {1 << 13, 1 << 20, 1 << 22})
      EXPECT_NEAR(total(profiled_collective(profile, reduce_of(bytes), {.ranks = n})) / ring(n, static_cast<double>(bytes)), 1,
                  1e-9)
          << n;
}

// Between 4 ranks with 1 us a step and 16 with 3 us, 8 lie halfway on the logarithm: 2 us, times 14 steps.
TEST(ProfiledCollective, MixesByTheLogarithmOfTheRanks) {
  const MachineProfile profile{.collectives = {at(NvLink, 4, 1, 4096, 6e-6), at(NvLink, 4, 1, 8192, 6e-6),
                                               at(NvLink, 16, 1, 4096, 90e-6), at(NvLink, 16, 1, 8192, 90e-6)}};
  EXPECT_NEAR(total(profiled_collective(profile, reduce_of(4096), {.ranks = 8})), 28e-6, 1e-12);
}

// The class of the group's links, else that of processes, else of threads; between nodes the network or nothing.
TEST(ProfiledCollective, TakesTheClassOfTheLinks) {
  MachineProfile profile{.collectives = {at(Process, 2, 1, 1000, 1e-6), at(Node, 2, 1, 1000, 2e-6),
                                         at(NvLink, 2, 1, 1000, 3e-6), at(Pcie, 2, 1, 1000, 4e-6),
                                         at(Network, 2, 2, 1000, 5e-6)}};
  const auto time = [&](const GroupPlace& place) { return total(profiled_collective(profile, reduce_of(1000), place)); };
  EXPECT_DOUBLE_EQ(time({2, 1, LinkKind::NvLink}), 3e-6);
  EXPECT_DOUBLE_EQ(time({2, 1, LinkKind::Pcie}), 4e-6);
  EXPECT_DOUBLE_EQ(time({2, 1, LinkKind::CpuToCpu}), 4e-6);
  EXPECT_DOUBLE_EQ(time({2, 2, LinkKind::NvLink}), 5e-6);
  profile.collectives.erase(profile.collectives.begin() + 2, profile.collectives.end());
  EXPECT_DOUBLE_EQ(time({2, 1, LinkKind::NvLink}), 2e-6);
  EXPECT_DOUBLE_EQ(time({2, 2, LinkKind::NvLink}), -1);
  profile.collectives.pop_back();
  EXPECT_DOUBLE_EQ(time({2, 1, LinkKind::Pcie}), 1e-6);
  Collective other = reduce_of(1000);
  other.kind = CollectiveKind::AllGather;
  EXPECT_FALSE(profiled_collective(profile, other, {.ranks = 2}));
}

TEST(ProfiledCollective, TakesTheAlgorithmOfThePlan) {
  MachineProfile profile{.collectives = {at(NvLink, 2, 1, 1000, 1e-6), at(NvLink, 2, 1, 1000, 2e-6, MeasuredAlgorithm::Direct),
                                         at(NvLink, 2, 1, 1000, 3e-6, MeasuredAlgorithm::Tree),
                                         at(NvLink, 2, 1, 1000, 4e-6, MeasuredAlgorithm::Nvls)}};
  const auto time = [&](Algorithm algorithm) {
    return total(profiled_collective(profile, reduce_of(1000, algorithm), {.ranks = 2}));
  };
  EXPECT_DOUBLE_EQ(time(Algorithm::Ring), 1e-6);  // not measured: what the library chose
  EXPECT_DOUBLE_EQ(time(Algorithm::DoubleTree), 3e-6);
  EXPECT_DOUBLE_EQ(time(Algorithm::NvlinkSharp), 4e-6);
  EXPECT_DOUBLE_EQ(time(Algorithm::Hierarchical), 1e-6);
  profile.collectives.erase(profile.collectives.begin());
  EXPECT_DOUBLE_EQ(time(Algorithm::Ring), 2e-6);
}

// 16 ranks on 4 nodes are like 8 on 2, not like 4 on 4.
TEST(ProfiledCollective, TakesGroupsThatAreAsDense) {
  const MachineProfile profile{.collectives = {at(Network, 2, 2, 1000, 2e-6), at(Network, 2, 2, 2000, 2e-6),
                                               at(Network, 8, 2, 1000, 14e-6), at(Network, 8, 2, 2000, 14e-6),
                                               at(Network, 4, 4, 1000, 60e-6), at(Network, 4, 4, 2000, 60e-6)}};
  const auto time = [&](int ranks, int nodes) {
    return total(profiled_collective(profile, reduce_of(1000), {.ranks = ranks, .nodes = nodes}));
  };
  EXPECT_NEAR(time(16, 4), 30e-6, 1e-12);  // 1 us a step of 8 on 2; 30 steps
  EXPECT_NEAR(time(4, 4), 60e-6, 1e-12);
  EXPECT_NEAR(time(8, 8), 140e-6, 1e-12);  // 10 us a step of 4 on 4; 14 steps
}

// Two GPUs of a node and two of different nodes: each all-reduce takes alone what was measured over its links, and so does the message between
// nodes; without measurements between nodes the formulas answer.
TEST(ProfiledCollective, ReplacesTheCostsOfAPlan) {
  const Cluster cluster = load_cluster("dgx-a100-x2");
  const auto costs_of = [&](const MachineProfile& profile, int apart) {
    Plan plan =
        plan_of_two(cluster, {{.what = reduce_of(6000)}, {.what = Exchange{.to = Peer{.role_shift = 1}, .bytes = {1000}}}});
    plan.placement.explicit_devices = {{0}, {apart}};
    cost_plan(plan, cluster, {}, &profile);
    return plan.costs[0].by_segment[0];
  };
  MachineProfile profile{
      .device = cluster.nodes[0].shape.gpu, .link_latency = {1e-6}, .link_bandwidth = {1e9}, .collective_share = 0.25};
  profile.collectives = {at(NvLink, 2, 1, 4000, 10e-6), at(NvLink, 2, 1, 8000, 14e-6)};
  const std::vector<Cost> near = costs_of(profile, 1);
  EXPECT_EQ(near[0].busy.value, 6000);  // 12 us, of which 6000 ns are 6000 bytes at 1 ns each
  // All-reduce of two over NVLink 3: 6000 bytes at 300 GB/s take 20 ns; stretched to 6000.
  EXPECT_NEAR(near[0].wire_factor, 6000.0 / 20, 1e-6);
  EXPECT_EQ(near[0].sm_share, 0.25);
  EXPECT_EQ(near[1].busy.value, 3000);  // the link of these: 3 us + bytes / 1 GB/s, as 2 (3 us + bytes / 2 / 1 GB/s)
  EXPECT_NEAR(near[1].wire_factor, 300e9 / 1e9, 1e-3);
  const std::vector<Cost> modelled = costs_of({.device = "another"}, 8), unmeasured = costs_of(profile, 8);
  EXPECT_EQ(modelled, unmeasured);
  profile.collectives.push_back(at(Network, 2, 2, 4000, 100e-6));
  profile.collectives.push_back(at(Network, 2, 2, 8000, 140e-6));
  const std::vector<Cost> far = costs_of(profile, 8);
  EXPECT_EQ(far[0].busy.value, 60000);
  EXPECT_EQ(far[1].busy.value, 30000);
  EXPECT_NE(far[1].wire_factor, unmeasured[1].wire_factor);
}

// Two phases inside the nodes and one between them: together as long as what was measured.
TEST(ProfiledCollective, PhasesShareTheMeasuredTime) {
  const Cluster cluster = load_cluster("dgx-a100-x2");
  const foreshard::Network network(cluster);
  const std::vector<DeviceId> devices = {{0}, {1}, {8}, {9}};
  Plan plan;
  plan.segments = {{.instructions = {{.what = reduce_of(1 << 20, Algorithm::Hierarchical), .stream = {0}}}}};
  for (int role = 0; role < 4; ++role)
    plan.roles.push_back({.device_kind = cluster.nodes[0].shape.gpu, .streams = {{"compute"}}, .actions = {{.segment = {0}}}});
  plan.groups = {{"all", {{0}, {1}, {2}, {3}}, {}}};
  plan.placement = {.order = {Placement::kRole}, .explicit_devices = devices};
  const MachineProfile profile{.device = cluster.nodes[0].shape.gpu,
                               .collectives = {at(Network, 4, 2, 1 << 19, 300e-6), at(Network, 4, 2, 1 << 20, 500e-6),
                                               at(Network, 4, 2, 1 << 21, 900e-6)}};
  cost_plan(plan, cluster, {}, &profile);
  const Cost cost = plan.costs[0].by_segment[0][0];
  const auto phases = collective_phases(network, reduce_of(1 << 20, Algorithm::Hierarchical), devices);
  ASSERT_EQ(phases.size(), 3U);
  double seconds = static_cast<double>(cost.busy.value) * 1e-9;
  for (const CollectiveFlow& phase : phases) {
    double alone = 0;
    for (const LinkId link : phase.links) {
      const auto times = static_cast<double>(std::count(phase.links.begin(), phase.links.end(), link));
      alone = std::max(alone, times * phase.bytes / network.link(link).rate().value);
    }
    seconds += alone * cost.wire_factor;
  }
  EXPECT_NEAR(seconds, 500e-6, 1e-9);
  EXPECT_NEAR(static_cast<double>(cost.busy.value), 100e3, 1);  // 200 us of 500 KiB: 400 us on the wire
}

}  // namespace
}  // namespace foreshard::profile_collective_test
