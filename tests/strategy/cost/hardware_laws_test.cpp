// Hardware that can only help is never slower, of isolated collectives. The last slice of a collective jumps by some hundred
// thousandths where another link becomes the busiest: 1e-4 is allowed. More NICs move the places at which
// rings enter a node, and can make them longer: at most one in a hundred of such pairs is slower.
#include <gtest/gtest.h>

#include <cstdio>
#include <string>

#include "core/cluster_file/cluster_file.h"
#include "strategy/cost/communication_path.h"
#include "tests/how_many.h"
#include "tests/strategy/support_random_strategy.h"

namespace foreshard::hardware_laws_test {
namespace {

struct Machine {
  std::string nvlink = "none", nics_at = "switch";
  double nvlink_gb = 300, pcie_gb = 31.5, nic_gbit = 200, socket_gb = 100, oversubscription = 1;
  int switches = 4, nics = 4, nodes = 2, sockets = 2;
  bool rails = false;

  std::string text() const {
    const std::string link =
        nvlink == "none" ? ""
                         : "\"nvlink\": {\"kind\": \"" + nvlink + "\", \"bandwidth\": \"" + number(nvlink_gb) + " GB/s\"}, ";
    return "{\"gpu\": \"a100-80\", \"gpus_per_node\": 8, " + link + "\"pcie\": {\"bandwidth\": \"" + number(pcie_gb) +
           " GB/s\", \"switches\": " + std::to_string(switches) + "}, \"nics\": {\"count\": " + std::to_string(nics) +
           ", \"bandwidth\": \"" + number(nic_gbit) + " Gb/s\"" + (nics_at == "socket" ? ", \"at\": \"socket\"" : "") +
           "}, \"sockets\": " + std::to_string(sockets) + ", \"socket_link\": \"" + number(socket_gb) +
           " GB/s\", \"nodes\": " + std::to_string(nodes) + ", \"fabric\": {\"rail_optimised\": " + (rails ? "true" : "false") +
           ", \"nodes_per_leaf\": 2, \"oversubscription\": " + number(oversubscription) + "}}";
  }
  static std::string number(double value) {
    char text[32];
    std::snprintf(text, sizeof text, "%.6g", value);
    return text;
  }
};

Machine drawn(RandomChoice& random) {
  Machine m;
  m.nvlink = random.one_of<const char*>({"none", "switch", "mesh"});
  m.nics_at = random.one_of<const char*>({"switch", "socket"});
  m.nvlink_gb = random.one_of({50.0, 300.0, 450.0, 900.0}), m.pcie_gb = random.one_of({15.75, 31.508, 63.015});
  m.nic_gbit = random.one_of({25.0, 100.0, 200.0, 400.0, 500.0, 800.0}), m.socket_gb = random.one_of({40.0, 100.0});
  m.switches = random.one_of({2, 4}), m.nics = random.one_of({1, 2, 4, 8}), m.nodes = random(1, 4);
  m.oversubscription = random.one_of({1.0, 2.0}), m.rails = random.toss();
  return m;
}

// Makes one thing better; returns what.
std::string improve(Machine& m, RandomChoice& random) {
  const double factor = random.one_of({1.001, 1.01, 1.1, 1.5, 2.0, 4.0});
  switch (random(0, 5)) {
    case 0: return m.nvlink_gb *= factor, "NVLink";
    case 1: return m.pcie_gb *= factor, "PCIe";
    case 2: return m.socket_gb *= factor, "link between sockets";
    case 3: return m.oversubscription = 1, "oversubscription";
    case 4: return m.nics = std::min(8, m.nics * 2), "NICs";
    default: return m.nic_gbit *= factor, "NIC";
  }
}

double alone(const Cluster& cluster, const Collective& what, const std::vector<DeviceId>& members) {
  const Network network(cluster);
  const CommunicationPath path = communication_path(network, what, members);
  const Cost cost = collective_cost(network.gpu(members.front()), what, path);
  return to_seconds(cost.busy).value + path.flow.value * cost.wire_factor;
}

}  // namespace

TEST(HardwareLaws, BetterHardwareIsNeverSlower) {
  RandomChoice random(61);
  int pairs = 0, faster = 0, more_nics = 0, exceptions = 0;
  const int wanted = how_many(600, 3000);
  for (int draw = 0; pairs < wanted && draw < 4 * wanted; ++draw) {
    Machine before = drawn(random), after = before;
    const std::string what = improve(after, random);
    const Collective collective{
        .kind = random.one_of(
            {CollectiveKind::AllReduce, CollectiveKind::AllGather, CollectiveKind::ReduceScatter, CollectiveKind::AllToAll}),
        .algorithm = random.one_of({Algorithm::Ring, Algorithm::Tree, Algorithm::DoubleTree, Algorithm::Hierarchical}),
        .bytes = {std::int64_t{1} << random(12, 31)}};
    const int all = 8 * before.nodes, step = random.one_of({1, 2, 4, 8});
    std::vector<DeviceId> members;
    for (int device = 0; device < all; device += step) members.push_back({device});
    if (members.size() < 2) continue;
    const double slow = alone(parse_cluster(before.text(), "before.json"), collective, members);
    const double fast = alone(parse_cluster(after.text(), "after.json"), collective, members);
    ++pairs, faster += fast < slow ? 1 : 0, more_nics += after.nics > before.nics ? 1 : 0;
    if (fast <= slow * (1 + 1e-4)) continue;
    const bool nics = after.nics > before.nics;
    exceptions += nics ? 1 : 0;
    std::printf("%s: %.3g ms, with better %s %.3g ms\n", before.text().c_str(), 1e3 * slow, what.c_str(), 1e3 * fast);
    EXPECT_TRUE(nics) << what << "\n" << after.text() << "\nover " << members.size();
  }
  EXPECT_EQ(pairs, wanted);
  EXPECT_GT(faster, wanted / 5);
  EXPECT_GT(more_nics, wanted / 20);
  EXPECT_LE(exceptions, 0.01 * more_nics + 1);
}

}  // namespace foreshard::hardware_laws_test
