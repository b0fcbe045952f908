// OperatorTraits over random clusters, with a slow obvious answer beside the clever one.
#include <gtest/gtest.h>

#include <limits>
#include <map>
#include <queue>
#include <random>
#include <set>

#include "core/network/network.h"
#include "core/network/network_graph.h"
#include "tests/core/network_clusters.h"

namespace foreshard::network_property_test {
namespace {

int pick(std::mt19937& random, std::initializer_list<int> from) {
  return *(from.begin() + static_cast<std::ptrdiff_t>(random() % from.size()));
}

NodeShape random_shape(std::mt19937& random) {
  ShapeChoice choice;
  choice.gpus = pick(random, {1, 2, 3, 4, 8});
  choice.per_switch = pick(random, {1, 2, 4});
  choice.nics = pick(random, {1, 2, 4, choice.gpus});
  choice.nvlink = pick(random, {0, 1, 1}) * 300e9;
  choice.nic = pick(random, {1, 2}) * 12.5e9;
  NodeShape shape = switched_shape(choice);
  if (random() % 3 == 0 && choice.nvlink == 0)  // some direct links
    for (int a = 0; a + 1 < choice.gpus; ++a) join(shape, a, a + 1, LinkKind::NvLink, 25e9 * pick(random, {1, 2}));
  return shape;
}

Cluster random_cluster(std::mt19937& random) {
  Fabric fabric{.levels = pick(random, {1, 2, 3}),
                .nodes_per_leaf = pick(random, {1, 2, 3}),
                .leaves_per_pod = pick(random, {1, 2}),
                .oversubscription = 1.0 * pick(random, {1, 2, 3}),
                .switch_latency = {1e-7},
                .rail_optimised = random() % 4 != 0};
  Cluster cluster = cluster_of(random_shape(random), pick(random, {1, 2, 3, 5}), fabric);
  if (random() % 3 == 0) cluster.nodes.push_back({random_shape(random), pick(random, {1, 2})});
  return cluster;
}

// The costs that core/network/network.h states, in its units. Ties inside a kind are broken by bandwidth and do not count here.
double cost(const NetworkLink& link, bool port) {
  switch (link.kind) {
    case LinkKind::NvLink: return 10;
    case LinkKind::Pcie: return 100;
    case LinkKind::CpuToCpu: return 150;
    case LinkKind::DramBus: return 10;
    case LinkKind::NvmeBus: return 100;
    case LinkKind::Network: return port ? 500 : 50;
  }
  return 0;
}

struct Expanded {
  ClusterGraph graph;
  std::vector<std::vector<std::size_t>> leaving;  // edges per vertex
  std::map<LinkId, std::size_t> edge_of;
  std::map<int, int> vertex_of_device;

  explicit Expanded(const Network& network) : graph(expand(network)), leaving(graph.vertices.size()) {
    for (std::size_t e = 0; e < graph.edges.size(); ++e) {
      leaving[static_cast<std::size_t>(graph.edges[e].from)].push_back(e);
      EXPECT_TRUE(edge_of.emplace(graph.edges[e].link, e).second) << "a link twice";
    }
    for (std::size_t v = 0; v < graph.vertices.size(); ++v)
      if (graph.vertices[v].device.valid()) vertex_of_device[graph.vertices[v].device.value] = static_cast<int>(v);
  }
  bool port(std::size_t e) const {
    return graph.vertices[static_cast<std::size_t>(graph.edges[e].from)].kind == PartKind::Nic ||
           graph.vertices[static_cast<std::size_t>(graph.edges[e].to)].kind == PartKind::Nic;
  }
  std::vector<double> distances(const Network& network, int source) const {
    std::vector<double> distance(graph.vertices.size(), std::numeric_limits<double>::infinity());
    std::priority_queue<std::pair<double, int>> queue;
    distance[static_cast<std::size_t>(source)] = 0;
    queue.push({0, source});
    while (!queue.empty()) {
      const auto [negative, at] = queue.top();
      queue.pop();
      if (-negative > distance[static_cast<std::size_t>(at)]) continue;
      for (const std::size_t e : leaving[static_cast<std::size_t>(at)]) {
        const double next = cost(network.link(graph.edges[e].link), port(e)) - negative;
        if (next >= distance[static_cast<std::size_t>(graph.edges[e].to)]) continue;
        distance[static_cast<std::size_t>(graph.edges[e].to)] = next;
        queue.push({-next, graph.edges[e].to});
      }
    }
    return distance;
  }
};

// Walks the route over the expanded graph; its cost, or -1 when it does not lead from one to the other.
double walk(const Network& network, const Expanded& expanded, const Route& route, int from, int to) {
  double sum = 0;
  int at = expanded.vertex_of_device.at(from);
  for (const LinkId id : route.links) {
    const std::size_t e = expanded.edge_of.at(id);
    if (expanded.graph.edges[e].from != at) return -1;
    at = expanded.graph.edges[e].to;
    sum += cost(network.link(id), expanded.port(e));
  }
  return at == expanded.vertex_of_device.at(to) ? sum : -1;
}

TEST(NetworkProperty, RoutesAreTheCheapestPathsOfTheExpandedGraph) {
  std::mt19937 random(1);
  for (int i = 0; i < 150; ++i) {
    const Network network(random_cluster(random));
    const Expanded expanded(network);
    ASSERT_EQ(expanded.graph.edges.size(), static_cast<std::size_t>(network.links()));
    for (int from = 0; from < network.devices(); ++from) {
      const std::vector<double> distance = expanded.distances(network, expanded.vertex_of_device.at(from));
      for (int to = 0; to < network.devices(); ++to)
        ASSERT_EQ(walk(network, expanded, network.route({from}, {to}), from, to),
                  distance[static_cast<std::size_t>(expanded.vertex_of_device.at(to))])
            << "cluster " << i << ", " << from << " to " << to;
    }
  }
}

TEST(NetworkProperty, RoutesAddUpAndEveryLinkHasCapacityAndAName) {
  std::mt19937 random(2);
  for (int i = 0; i < 60; ++i) {
    const Network network(random_cluster(random));
    std::set<std::string> names;
    for (int id = 0; id < network.links(); ++id) {
      ASSERT_GT(network.link({id}).bandwidth.value, 0) << network.name({id});
      ASSERT_GE(network.link({id}).latency.value, 0);
      ASSERT_TRUE(names.insert(network.name({id})).second) << network.name({id}) << " twice";
    }
    for (int from = 0; from < network.devices(); ++from)
      for (int to = 0; to < network.devices(); ++to) {
        if (from == to) continue;
        const Route route = network.route({from}, {to});
        double latency = 0, bandwidth = std::numeric_limits<double>::infinity();
        for (const LinkId id : route.links) {
          latency += network.link(id).latency.value;
          bandwidth = std::min(bandwidth, network.link(id).bandwidth.value);
        }
        ASSERT_NEAR(route.latency.value, latency, 1e-12);
        ASSERT_EQ(route.bandwidth.value, bandwidth);
      }
  }
}

TEST(NetworkProperty, ThereAndBackAreAlikeWhereNodesAreEqual) {
  std::mt19937 random(3);
  for (int i = 0; i < 60; ++i) {
    Cluster cluster = random_cluster(random);
    cluster.nodes.resize(1);
    const Network network(cluster);
    for (int from = 0; from < network.devices(); ++from)
      for (int to = 0; to < from; ++to) {
        const Route there = network.route({from}, {to}), back = network.route({to}, {from});
        ASSERT_EQ(there.links.size(), back.links.size());
        ASSERT_NEAR(there.latency.value, back.latency.value, 1e-12);
        ASSERT_EQ(there.bandwidth, back.bandwidth);
      }
  }
}

std::map<LinkId, double> load(const std::vector<CollectiveFlow>& phases) {
  std::map<LinkId, double> bytes;
  for (const CollectiveFlow& flow : phases)
    for (const LinkId id : flow.links) bytes[id] += flow.bytes;
  return bytes;
}

std::vector<DeviceId> random_members(std::mt19937& random, int devices) {
  std::vector<DeviceId> members;
  for (int i = 0; i < devices; ++i)
    if (random() % 2) members.push_back({i});
  std::shuffle(members.begin(), members.end(), random);
  return members;
}

// Every member sends the ring's volume to somebody and receives as much, over the links that leave and enter its GPU; links
// that only pass a GPU by (an NVLink hop to another rail) come on top.
TEST(NetworkProperty, RingVolumesAreTheClosedForms) {
  std::mt19937 random(4);
  for (int i = 0; i < 120; ++i) {
    const Network network(random_cluster(random));
    const std::vector<DeviceId> members = random_members(random, network.devices());
    const int n = static_cast<int>(members.size());
    if (n < 2) continue;
    for (const CollectiveKind kind : {CollectiveKind::AllReduce, CollectiveKind::ReduceScatter, CollectiveKind::AllGather}) {
      const auto phases = collective_phases(network, {.kind = kind, .bytes = {1'000'000}}, members);
      ASSERT_EQ(phases.size(), 1u);
      const double factor = kind == CollectiveKind::AllReduce ? 2 : 1;
      EXPECT_EQ(phases[0].steps, factor * (n - 1));
      const std::vector<RingOrder> rings = ring_orders(network, members);
      double shares = 0;
      for (const RingOrder& ring : rings) {
        shares += ring.shares;
        EXPECT_EQ(std::set<DeviceId>(ring.order.begin(), ring.order.end()), std::set<DeviceId>(members.begin(), members.end()));
        EXPECT_EQ(ring.order.size(), members.size());
      }
      EXPECT_NEAR(phases[0].bytes * shares, factor * (n - 1) / n * 1e6, 1e-6);
      std::map<DeviceId, double> out, in;
      const ClusterGraph graph = expand(network);
      const std::map<LinkId, double> bytes = load(phases);
      for (const ClusterGraph::Edge& edge : graph.edges) {
        const auto at = bytes.find(edge.link);
        if (at == bytes.end()) continue;
        out[graph.vertices[static_cast<std::size_t>(edge.from)].device] += at->second;
        in[graph.vertices[static_cast<std::size_t>(edge.to)].device] += at->second;
      }
      for (const DeviceId member : members) {
        EXPECT_GE(out[member], factor * (n - 1) / n * 1e6 * (1 - 1e-12));
        EXPECT_NEAR(out[member], in[member], 1e-6) << "what passes by leaves again";
      }
    }
  }
}

TEST(NetworkProperty, TheOrderOfTheMembersDoesNotMatterToARing) {
  std::mt19937 random(5);
  for (int i = 0; i < 40; ++i) {
    const Network network(random_cluster(random));
    std::vector<DeviceId> members = random_members(random, network.devices());
    const auto once = load(collective_phases(network, {.bytes = {1000}}, members));
    std::shuffle(members.begin(), members.end(), random);
    EXPECT_EQ(load(collective_phases(network, {.bytes = {1000}}, members)), once);
  }
}

TEST(NetworkProperty, EveryAlgorithmAndKindGivesPositiveFiniteFlows) {
  std::mt19937 random(6);
  for (int i = 0; i < 60; ++i) {
    const Network network(random_cluster(random));
    const std::vector<DeviceId> members = random_members(random, network.devices());
    for (const Algorithm algorithm : {Algorithm::Ring, Algorithm::Tree, Algorithm::DoubleTree, Algorithm::Hierarchical,
                                      Algorithm::ParameterServer, Algorithm::NvlinkSharp})
      for (const CollectiveKind kind : {CollectiveKind::AllReduce, CollectiveKind::ReduceScatter, CollectiveKind::AllGather,
                                        CollectiveKind::Broadcast, CollectiveKind::Reduce, CollectiveKind::AllToAll}) {
        const auto phases = collective_phases(network, {.kind = kind, .algorithm = algorithm, .bytes = {1000}}, members);
        EXPECT_EQ(phases.empty(), members.size() < 2);
        for (const CollectiveFlow& flow : phases) {
          EXPECT_GT(flow.bytes, 0);
          EXPECT_GT(flow.steps, 0);
          EXPECT_GT(flow.step_latency.value, 0);
          EXPECT_FALSE(flow.links.empty());
        }
      }
  }
}

}  // namespace
}  // namespace foreshard::network_property_test
