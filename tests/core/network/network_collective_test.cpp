#include <gtest/gtest.h>

#include <map>

#include "core/cluster_file/cluster_file.h"
#include "core/network/network.h"
#include "tests/core/network_clusters.h"

namespace foreshard::network_collective_test {
namespace {

std::vector<DeviceId> first(int n) {
  std::vector<DeviceId> members;
  for (int i = 0; i < n; ++i) members.push_back({i});
  return members;
}

using Bytes2 = std::map<std::string, double>;
Bytes2 load(const Network& network, const std::vector<CollectiveFlow>& phases) {
  Bytes2 bytes;
  for (const CollectiveFlow& flow : phases)
    for (const LinkId id : flow.links) bytes[network.name(id)] += flow.bytes;
  return bytes;
}

// Time alone: phases one after the other, each bound by its most loaded link.
double seconds(const Network& network, const std::vector<CollectiveFlow>& phases) {
  double sum = 0;
  for (const CollectiveFlow& flow : phases) {
    std::map<LinkId, int> times;
    for (const LinkId id : flow.links) ++times[id];
    double longest = 0;
    for (const auto& [id, count] : times) longest = std::max(longest, flow.bytes * count / network.link(id).bandwidth.value);
    sum += longest + flow.steps * flow.step_latency.value;
  }
  return sum;
}

// One GPU and one NIC of 12.5 GB/s per node below one switch, no latency: the flat star of the textbooks.
Network star(int nodes) {
  NodeShape shape = switched_shape({.gpus = 1, .per_switch = 1, .nics = 1, .nvlink = 0, .pcie = 64e9, .nic = 12.5e9});
  shape.nic_latency = {};
  for (NodeLink& link : shape.links) link.latency = {};
  return Network(cluster_of(shape, nodes, {.levels = 1}));
}

// An all-to-all of n bytes for each of two nodes of 4 members: inside a node each sends a quarter to every other, then half to the member
// with its place on the other node. Between nodes half of the bytes leave a member, as directly, in one message instead of 4.
TEST(NetworkCollective, AnAllToAllOfTwoLevels) {
  const Network network(cluster_of(
      switched_shape({.gpus = 4, .per_switch = 4, .nics = 4, .nvlink = 300e9, .pcie = 64e9, .nic = 12.5e9}), 2, {.levels = 1}));
  const Collective what = {.kind = CollectiveKind::AllToAll, .algorithm = Algorithm::TwoLevel, .bytes = {800}};
  const auto phases = collective_phases(network, what, first(8));
  ASSERT_EQ(phases.size(), 2U);
  EXPECT_EQ(phases[0].bytes, 200);
  EXPECT_EQ(phases[0].steps, 3);
  EXPECT_EQ(phases[1].bytes, 400);
  EXPECT_EQ(phases[1].steps, 1);
  Collective direct = what;
  direct.algorithm = Algorithm::Ring;
  const auto leaving = [&](const std::vector<CollectiveFlow>& flows) {
    double most = 0;
    for (const auto& [name, bytes] : load(network, flows))
      if (name.find("->leaf0") != std::string::npos) most = std::max(most, bytes);
    return most;
  };
  EXPECT_EQ(leaving(phases), 400);
  EXPECT_EQ(leaving(collective_phases(network, direct, first(8))), 400);
  // On one node, and for other kinds, it is what a ring is.
  EXPECT_EQ(load(network, collective_phases(network, what, first(4))),
            load(network, collective_phases(network, direct, first(4))));
  Collective sum = what;
  sum.kind = CollectiveKind::AllReduce;
  Collective ring = sum;
  ring.algorithm = Algorithm::Ring;
  EXPECT_EQ(load(network, collective_phases(network, sum, first(8))),
            load(network, collective_phases(network, ring, first(8))));
}

// A link that a flow crosses twice is busy twice as long; links come by rising id.
TEST(NetworkCollective, TheLinksOfAFlowAreBusyForTheirShare) {
  const Network network = star(2);
  const Route route = network.route({0}, {1});
  const std::vector<LinkId> out(route.links.begin(), route.links.end());
  ASSERT_GE(out.size(), 2U);
  CollectiveFlow flow{.links = {out[1], out[0], out[1]}, .bytes = 1000};
  const std::vector<BusyLink> busy = busy_links(network, flow);
  ASSERT_EQ(busy.size(), 2U);
  EXPECT_LT(busy[0].id.value, busy[1].id.value);
  for (const BusyLink& link : busy) {
    EXPECT_EQ(link.times, link.id.value == out[1].value ? 2 : 1);
    EXPECT_DOUBLE_EQ(link.busy.value, 1000.0 * link.times / network.link(link.id).rate().value);
  }
  EXPECT_TRUE(busy_links(network, {}).empty());
}

// The volume that leaves the busiest NIC is what collective_volume says, for every algorithm that a star can run.
TEST(NetworkCollective, VolumesOnAStarAreTheClosedForms) {
  for (int n = 2; n <= 17; ++n) {
    const Network network = star(n);
    for (const Algorithm algorithm : {Algorithm::Ring, Algorithm::Tree, Algorithm::DoubleTree, Algorithm::Hierarchical,
                                      Algorithm::TwoDimensional, Algorithm::ParameterServer, Algorithm::GatherToRoot})
      for (const CollectiveKind kind : {CollectiveKind::AllReduce, CollectiveKind::ReduceScatter, CollectiveKind::AllGather,
                                        CollectiveKind::Broadcast, CollectiveKind::Reduce, CollectiveKind::AllToAll}) {
        const auto phases = collective_phases(network, {.kind = kind, .algorithm = algorithm, .bytes = {840}}, first(n));
        double most = 0;
        int steps = 0;
        for (const auto& [name, bytes] : load(network, phases))
          if (name.ends_with("->leaf0.rail0")) most = std::max(most, bytes);
        for (const CollectiveFlow& flow : phases) steps += flow.steps;
        const CollectiveVolume volume = collective_volume(kind, algorithm, {840}, n);
        EXPECT_NEAR(most, volume.bytes, 1e-9) << "n " << n << " algorithm " << int(algorithm) << " kind " << int(kind);
        EXPECT_EQ(steps, volume.steps) << "n " << n << " algorithm " << int(algorithm) << " kind " << int(kind);
      }
  }
}

TEST(NetworkCollective, VolumeOfOneMemberIsNothing) {
  EXPECT_EQ(collective_volume(CollectiveKind::AllReduce, Algorithm::Ring, {100}, 1).bytes, 0);
  EXPECT_EQ(collective_volume(CollectiveKind::AllReduce, Algorithm::Ring, {100}, 1).steps, 0);
}

// techniques.md C1 and C2: G = 350 MB at 12.5 GB/s. One central server: n workers push n G in, then pull n G out:
// 2 n G / B = 0.112 s, 3.584 s, 7.168 s for n = 2, 64, 128. Ring: 2 (n-1)/n G / B = 0.028, 0.055125, 0.0555625 s.
// The server is a member of its own here: n + 1 members, n of them elsewhere.
TEST(NetworkCollective, ParameterServerSlowsDownWithItsWorkersTheRingDoesNot) {
  const std::map<int, std::pair<double, double>> expected = {
      {2, {0.112, 0.028}}, {64, {3.584, 0.055125}}, {128, {7.168, 0.0555625}}};
  for (const auto& [n, times] : expected) {
    const Network network = star(n + 1);
    const Collective server{.algorithm = Algorithm::ParameterServer, .bytes = {350'000'000}};
    EXPECT_NEAR(seconds(network, collective_phases(network, server, first(n + 1))), times.first, 1e-12);
    EXPECT_NEAR(seconds(network, collective_phases(network, {.bytes = {350'000'000}}, first(n))), times.second, 1e-12);
  }
}

// As many servers as members: everybody serves 1/n and moves as much as in a ring, 2 (n-1)/n G.
TEST(NetworkCollective, ParameterServersOnAllMembersAreAsGoodAsARing) {
  const Network network = star(8);
  const Collective servers{.algorithm = Algorithm::ParameterServer, .bytes = {800}, .servers = 8};
  EXPECT_NEAR(seconds(network, collective_phases(network, servers, first(8))), 2 * 7 * 100 / 12.5e9, 1e-18);
}

// Two GPUs below each PCIe switch: the ring 0-1-2-...-7 leaves a switch once and enters it once, so an uplink carries V once;
// two rings of even and odd GPUs both cross every uplink: 2 V over it.
TEST(NetworkCollective, RingsShareThePcieUplinks) {
  const Network network(cluster_of(switched_shape({.nics = 1, .nvlink = 0}), 1));
  const double all = 2 * 7.0 / 8 * 1000;
  const Bytes2 one = load(network, collective_phases(network, {.bytes = {1000}}, first(8)));
  EXPECT_DOUBLE_EQ(one.at("node0/pcie1->cpu0"), all);
  EXPECT_DOUBLE_EQ(one.at("node0/cpu0->pcie1"), all);
  const double half = 2 * 3.0 / 4 * 1000;
  const Bytes2 even = load(network, collective_phases(network, {.bytes = {1000}}, {{0}, {2}, {4}, {6}}));
  const Bytes2 odd = load(network, collective_phases(network, {.bytes = {1000}}, {{1}, {3}, {5}, {7}}));
  EXPECT_DOUBLE_EQ(even.at("node0/pcie1->cpu0") + odd.at("node0/pcie1->cpu0"), 2 * half);
}

// 4 nodes of 8: reduce-scatter inside (7/8 S over each port), ring over 4 nodes of S/8 on each rail (2 * 3/4 * S/8), all-gather.
TEST(NetworkCollective, HierarchicalHasThreePhases) {
  const Network network(cluster_of(switched_shape({}), 4));
  const Collective collective{.algorithm = Algorithm::Hierarchical, .bytes = {6400}};
  const auto phases = collective_phases(network, collective, first(32));
  ASSERT_EQ(phases.size(), 3u);
  const Bytes2 bytes = load(network, phases);
  EXPECT_DOUBLE_EQ(bytes.at("node2/gpu5->nvswitch"), 2 * 7.0 / 8 * 6400);
  EXPECT_DOUBLE_EQ(bytes.at("node2/nic5->leaf0.rail5"), 2 * 3.0 / 4 * 800);
  EXPECT_EQ(phases[0].steps + phases[1].steps + phases[2].steps, 7 + 6 + 7);
  EXPECT_EQ(collective_phases(network, {.kind = CollectiveKind::AllGather, .algorithm = Algorithm::Hierarchical, .bytes = {64}},
                              first(32))
                .size(),
            2u);
  EXPECT_EQ(collective_phases(network, collective, first(9)).size(), 1u) << "8 and 1 members: a ring";
}

// 2 nodes of 8 in a grid of four rows: rows of 4 GPUs inside a node, columns of four GPUs across both. 3/4 S over a port for the rows, down and up,
// and 2 * 3/4 of S/4 for each of four columns, which crosses from node to node and back.
TEST(NetworkCollective, AGridHasRowsAndColumns) {
  const Network network(cluster_of(switched_shape({}), 2));
  const Collective collective{.algorithm = Algorithm::TwoDimensional, .bytes = {6400}};
  const auto phases = collective_phases(network, collective, first(16));
  ASSERT_EQ(phases.size(), 3u);
  EXPECT_EQ(phases[0].steps + phases[1].steps + phases[2].steps, 2 * 3 + 2 * 3);
  const auto out_of_node = [&](const CollectiveFlow& phase) {
    double bytes = 0;
    for (const auto& [name, carried] : load(network, {phase}))
      if (name.starts_with("node0/nic") && name.find("->leaf") != std::string::npos) bytes += carried;
    return bytes;
  };
  EXPECT_DOUBLE_EQ(load(network, {phases[0]}).at("node0/gpu5->nvswitch"), 3.0 / 4 * 6400);
  EXPECT_EQ(out_of_node(phases[0]), 0);
  EXPECT_DOUBLE_EQ(out_of_node(phases[1]), 4 * 2 * 3.0 / 4 * 1600);
  EXPECT_EQ(collective_phases(network, collective, first(13)).size(), 1u) << "no grid: a ring";
}

// 8 GPUs: 9/8 S through each port instead of 14/8 S.
TEST(NetworkCollective, TheSwitchAddsWhereItCan) {
  NodeShape shape = switched_shape({});
  const Collective collective{.algorithm = Algorithm::NvlinkSharp, .bytes = {8000}};
  const Network without(cluster_of(shape, 2));
  EXPECT_DOUBLE_EQ(load(without, collective_phases(without, collective, first(8))).at("node0/gpu3->nvswitch"), 14000);
  shape.nvlink_sharp = true;
  const Network with(cluster_of(shape, 2));
  const Bytes2 bytes = load(with, collective_phases(with, collective, first(8)));
  EXPECT_DOUBLE_EQ(bytes.at("node0/gpu3->nvswitch"), 9000);
  EXPECT_DOUBLE_EQ(bytes.at("node0/nvswitch->gpu3"), 9000);
  EXPECT_EQ(collective_phases(with, collective, first(9)).front().steps, 16) << "two nodes: a ring";
}

// A broadcast among 4 nodes of 8: the root sends S once and receives nothing; every other GPU receives S.
TEST(NetworkCollective, BroadcastGoesAwayFromTheFirstMember) {
  const Network network(cluster_of(switched_shape({}), 1));
  std::vector<DeviceId> members = {{5}, {0}, {1}, {2}};
  const Bytes2 out = load(network, collective_phases(network, {.kind = CollectiveKind::Broadcast, .bytes = {100}}, members));
  EXPECT_EQ(out.count("node0/nvswitch->gpu5"), 0u);
  EXPECT_EQ(out.at("node0/gpu5->nvswitch"), 100);
  const Bytes2 in = load(network, collective_phases(network, {.kind = CollectiveKind::Reduce, .bytes = {100}}, members));
  EXPECT_EQ(in.count("node0/gpu5->nvswitch"), 0u);
  EXPECT_EQ(in.at("node0/nvswitch->gpu5"), 100);
}

TEST(NetworkCollective, AllToAllSendsAShareOverEveryPair) {
  const Network network(cluster_of(switched_shape({}), 1));
  const auto phases = collective_phases(network, {.kind = CollectiveKind::AllToAll, .bytes = {800}}, first(8));
  for (const auto& [name, bytes] : load(network, phases)) EXPECT_DOUBLE_EQ(bytes, 700) << name;
}

// A tree across nodes has one parent per node; inside, a chain. 2 nodes of 2 on one switch each, members 0 1 | 2 3, two NICs:
// two rings, so two trees with half of the data; each node's NICs send S/2 each, up or down.
TEST(NetworkCollective, TreesCrossBetweenNodesOnce) {
  const Network network(cluster_of(switched_shape({.gpus = 2, .nics = 2}), 2));
  const auto phases = collective_phases(network, {.algorithm = Algorithm::Tree, .bytes = {1000}}, first(4));
  const Bytes2 bytes = load(network, phases);
  for (const char* nic : {"node0/nic0->leaf0.rail0", "node0/nic1->leaf0.rail1", "node1/nic0->leaf0.rail0"})
    EXPECT_DOUBLE_EQ(bytes.at(nic), 500) << nic;
  EXPECT_EQ(phases[0].steps, 2 * (1 + 1));  // depth 1 between two nodes, one hop inside
}

// Eight GPUs and eight NICs at two sockets, without PCIe switches: four GPUs are as near to a NIC. Every GPU sends for one ring, so that the
// NICs, not the GPUs' own PCIe, bound the ring.
TEST(NetworkCollective, RingsLeaveNodesByDifferentGpus) {
  const Network network(parse_cluster(
      R"({"source": "test", "gpu": "h100-80", "gpus_per_node": 8, "nvlink": {"kind": "switch", "bandwidth": "450 GB/s"},
          "pcie": {"bandwidth": "63.015 GB/s"}, "nics": {"count": 8, "bandwidth": "400 Gb/s"}, "nodes": 4})",
      "test"));
  const Bytes2 bytes = load(network, collective_phases(network, {.bytes = {8'000'000}}, first(32)));
  const double volume = 2.0 * 31 / 32 * 8e6 / 8;
  for (int node = 0; node < 4; ++node)
    for (int i = 0; i < 8; ++i) {
      const std::string at = "node" + std::to_string(node) + "/gpu" + std::to_string(i), cpu = "cpu" + std::to_string(i / 4);
      EXPECT_NEAR(bytes.at(at + "->" + cpu), volume, 1e-6) << at;
      EXPECT_NEAR(bytes.at("node" + std::to_string(node) + "/" + cpu + "->gpu" + std::to_string(i)), volume, 1e-6) << at;
    }
}

}  // namespace
}  // namespace foreshard::network_collective_test
