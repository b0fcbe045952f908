#include "core/network/network.h"

#include <gtest/gtest.h>

#include <map>

#include "tests/core/network_clusters.h"

namespace foreshard::network_test {
namespace {

std::vector<std::string> names(const Network& network, const Route& route) {
  std::vector<std::string> text;
  for (const LinkId id : route.links) text.push_back(network.name(id));
  return text;
}
using Names = std::vector<std::string>;

TEST(NetworkRoute, InsideANodeOverTheSwitch) {
  const Network network(cluster_of(switched_shape({}), 1));
  const Route route = network.route({1}, {6});
  EXPECT_EQ(names(network, route), (Names{"node0/gpu1->nvswitch", "node0/nvswitch->gpu6"}));
  EXPECT_EQ(route.bandwidth.value, 300e9);
  EXPECT_DOUBLE_EQ(route.latency.value, 2e-6);  // two links of 1 us
  EXPECT_TRUE(network.route({3}, {3}).links.empty());
}

// Networks of one cluster share what was found about it; a cluster that differs in one number does not, nor one that has many others between.
TEST(NetworkRoute, WhatIsSharedIsOfAnEqualCluster) {
  const auto width = [](double nvlink) {
    return Network(cluster_of(switched_shape({.nvlink = nvlink}), 1)).route({1}, {6}).bandwidth.value;
  };
  for (int again = 0; again < 3; ++again)
    for (int i = 1; i <= 9; ++i) EXPECT_EQ(width(i * 1e9), i * 1e9);
  const Cluster cluster = cluster_of(switched_shape({}), 1);
  EXPECT_EQ(&Network(cluster).cluster(), &Network(Cluster(cluster)).cluster());
}

TEST(NetworkRoute, WithoutNvlinkOverPcieSwitchesAndSockets) {
  const Network network(cluster_of(switched_shape({.nvlink = 0}), 1));
  EXPECT_EQ(names(network, network.route({0}, {1})), (Names{"node0/gpu0->pcie0", "node0/pcie0->gpu1"}));
  EXPECT_EQ(names(network, network.route({7}, {0})),
            (Names{"node0/gpu7->pcie3", "node0/pcie3->cpu1", "node0/cpu1->cpu0", "node0/cpu0->pcie0", "node0/pcie0->gpu0"}));
}

TEST(NetworkRoute, SameRailStaysOnItsRail) {
  const Network network(cluster_of(switched_shape({}), 40, {.nodes_per_leaf = 32, .switch_latency = {3e-6}}));
  EXPECT_EQ(names(network, network.route({5}, {8 + 5})),
            (Names{"node0/gpu5->pcie2", "node0/pcie2->nic5", "node0/nic5->leaf0.rail5", "leaf0.rail5->node1/nic5",
                   "node1/nic5->pcie2", "node1/pcie2->gpu5"}));
  const Route far = network.route({5}, {8 * 35 + 5});
  EXPECT_EQ(far.links.size(), 8u);
  EXPECT_EQ(network.name(far.links[3]), "leaf0.rail5->spine");
  EXPECT_EQ(network.name(far.links[4]), "spine->leaf1.rail5");
  // PCIe 4 links of 1 us, two NICs of 2 us, three switches of 3 us
  EXPECT_NEAR(far.latency.value, 4e-6 + 4e-6 + 9e-6, 1e-15);
  EXPECT_EQ(far.bandwidth.value, 25e9);
}

TEST(NetworkRoute, BetweenRailsTheFirstHopIsNvlink) {
  const Network network(cluster_of(switched_shape({}), 2));
  EXPECT_EQ(names(network, network.route({0}, {8 + 6})),
            (Names{"node0/gpu0->nvswitch", "node0/nvswitch->gpu6", "node0/gpu6->pcie3", "node0/pcie3->nic6",
                   "node0/nic6->leaf0.rail6", "leaf0.rail6->node1/nic6", "node1/nic6->pcie3", "node1/pcie3->gpu6"}));
}

TEST(NetworkRoute, BetweenRailsWithoutNvlinkOverTheSpine) {
  const Network network(cluster_of(switched_shape({.nvlink = 0}), 2));
  EXPECT_EQ(names(network, network.route({0}, {8 + 6})),
            (Names{"node0/gpu0->pcie0", "node0/pcie0->nic0", "node0/nic0->leaf0.rail0", "leaf0.rail0->spine",
                   "spine->leaf0.rail6", "leaf0.rail6->node1/nic6", "node1/nic6->pcie3", "node1/pcie3->gpu6"}));
}

TEST(NetworkRoute, ThreeLevelsCrossTheCoreOnlyBetweenPods) {
  const Fabric fabric{.levels = 3, .nodes_per_leaf = 4, .leaves_per_pod = 2, .oversubscription = 2};
  const Network network(cluster_of(switched_shape({}), 24, fabric));
  EXPECT_EQ(network.route({0}, {8 * 7}).links.size(), 8u);  // pod 0 holds nodes 0..7
  const Route far = network.route({0}, {8 * 8});
  ASSERT_EQ(far.links.size(), 10u);
  EXPECT_EQ(network.name(far.links[4]), "pod0.spine->core");
  EXPECT_EQ(network.name(far.links[5]), "core->pod1.spine");
  // leaf: 4 nodes * 25 GB/s / 2; pod: 2 leaf groups * 8 rails * 50 GB/s / 2
  EXPECT_DOUBLE_EQ(network.link(far.links[3]).bandwidth.value, 50e9);
  EXPECT_DOUBLE_EQ(network.link(far.links[4]).bandwidth.value, 400e9);
}

// The longest route that is allowed: ten links to the NIC on both sides, a core crossing between. Eleven are refused.
TEST(NetworkRoute, LongPathsFitOrAreRefused) {
  const auto chain = [](int switches) {
    NodeShape shape{.name = "chain", .gpu = "X", .gpus = 1, .nics = 1, .nic_bandwidth = {1e9}};
    int at = add_part(shape, PartKind::Gpu, "gpu0");
    for (int i = 0; i < switches; ++i) {
      const int next = add_part(shape, PartKind::PcieSwitch, "pcie" + std::to_string(i));
      join(shape, at, next, LinkKind::Pcie, 1e9);
      at = next;
    }
    join(shape, at, add_part(shape, PartKind::Nic, "nic0"), LinkKind::Pcie, 1e9);
    return cluster_of(shape, 2, {.levels = 3, .nodes_per_leaf = 1, .leaves_per_pod = 1});
  };
  EXPECT_EQ(Network(chain(9)).route({0}, {1}).links.size(), 26u);
  EXPECT_THROW(Network(chain(10)), Error);
}

TEST(NetworkRoute, HostCopiesUseTheNearestMemory) {
  const Network network(cluster_of(switched_shape({}), 2));
  EXPECT_EQ(names(network, network.host_route({8 + 5}, Endpoint::HostMemory, false)),
            (Names{"node1/gpu5->pcie2", "node1/pcie2->cpu1", "node1/cpu1->dram1"}));
  EXPECT_EQ(names(network, network.host_route({8 + 5}, Endpoint::HostMemory, true)),
            (Names{"node1/dram1->cpu1", "node1/cpu1->pcie2", "node1/pcie2->gpu5"}));
  EXPECT_TRUE(network.host_route({0}, Endpoint::Nvme, true).links.empty());
}

double volume(const CollectiveFlow& flow) {  // bytes over the busiest link
  std::map<LinkId, int> times;
  int most = 0;
  for (const LinkId id : flow.links) most = std::max(most, ++times[id]);
  return flow.bytes * most;
}

TEST(NetworkCollective, RingOnOneSwitchHasTheClosedForm) {
  const Network network(cluster_of(switched_shape({}), 1));
  const Collective all_reduce{.bytes = {8'000'000}};
  const auto phases = collective_phases(network, all_reduce, {{0}, {1}, {2}, {3}, {4}, {5}, {6}, {7}});
  ASSERT_EQ(phases.size(), 1u);
  EXPECT_DOUBLE_EQ(volume(phases[0]), 2 * 7.0 / 8 * 8e6);
  EXPECT_EQ(phases[0].links.size(), 16u);
  EXPECT_EQ(phases[0].steps, 14);
  EXPECT_TRUE(collective_phases(network, all_reduce, {{3}}).empty());
}

TEST(NetworkCollective, RingAcrossNodesSpreadsOverTheNicsOfItsMembers) {
  const Network network(cluster_of(switched_shape({}), 4));
  std::vector<DeviceId> all;
  for (int i = 0; i < 32; ++i) all.push_back({i});
  const auto phases = collective_phases(network, {.kind = CollectiveKind::AllGather, .bytes = {32'000'000}}, all);
  ASSERT_EQ(phases.size(), 1u);
  std::map<std::string, int> times;
  for (const LinkId id : phases[0].links) ++times[network.name(id)];
  // (n-1)/n S = 31e6 in total; an eighth of it over each NIC port, all of it over each NVLink port.
  EXPECT_DOUBLE_EQ(phases[0].bytes, 31e6 / 8);
  for (int node = 0; node < 4; ++node)
    for (int i = 0; i < 8; ++i) {
      const std::string at = "node" + std::to_string(node), nic = at + "/nic" + std::to_string(i);
      const std::string leaf = "leaf0.rail" + std::to_string(i), gpu = at + "/gpu" + std::to_string(i);
      EXPECT_EQ(times[nic + "->" + leaf], 1) << nic;
      EXPECT_EQ(times[leaf + "->" + nic], 1) << nic;
      EXPECT_LE(times[gpu + "->nvswitch"], 8) << gpu;
      EXPECT_GE(times[gpu + "->nvswitch"], 7) << gpu;
    }
}

}  // namespace
}  // namespace foreshard::network_test
