#include "core/cluster.h"

#include <gtest/gtest.h>

#include "core/data_path.h"
#include "core/json.h"
#include "core/network.h"

namespace foreshard {
namespace {

TEST(Clusters, EveryShippedClusterLoadsAndRoutesEveryPairOfTwoNodes) {
  const std::vector<std::string> expected = {"dgx-a100",  "dgx-a100-40gb", "dgx-b200",           "dgx-h100",
                                             "dgx1-v100", "eth100-a100",   "eth25-a100",         "gb200-nvl72",
                                             "hgx-h200",  "pcie-a100-8",   "workstation-rtx4090"};
  EXPECT_EQ(shipped("topologies"), expected);
  for (const std::string& name : expected) {
    const Cluster one = load_cluster(name);
    EXPECT_EQ(one.name, name);
    EXPECT_FALSE(one.source.empty()) << name;
    const Cluster two = load_cluster(name + "-x2");
    const Network network(two);
    ASSERT_EQ(network.devices(), 2 * gpu_count(one)) << name;
    for (int from = 0; from < network.devices(); ++from)
      for (int to = 0; to < network.devices(); ++to)
        if (from != to) {
          ASSERT_GT(network.route({from}, {to}).bandwidth.value, 0) << name;
        }
    for (int gpu = 0; gpu < network.devices(); ++gpu)
      ASSERT_FALSE(network.host_route({gpu}, Endpoint::HostMemory, true).links.empty()) << name;
  }
}

TEST(Clusters, JsonRoundTripIsExact) {
  for (const std::string& name : shipped("topologies")) {
    const Cluster cluster = load_cluster(name + "-x3");
    EXPECT_EQ(parse_cluster(to_json(cluster), "copy"), cluster) << name;
  }
}

}  // namespace
}  // namespace foreshard
