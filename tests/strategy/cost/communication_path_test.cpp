// Paths are kept for a group whatever the size of the collective.
#include "strategy/cost/communication_path.h"

#include <gtest/gtest.h>

#include "core/cluster_file/cluster_file.h"
#include "tests/strategy/support_alone.h"

namespace foreshard::communication_path_test {
namespace {

// Half of an all-to-all's parts on two nodes of eight are for the own node, but for the rank's own: 7 of 16 over NVLink.
TEST(CommunicationPath, IsInProportionToTheBytes) {
  const Network network(load_cluster("dgx-h100-x2"));
  for (const CollectiveKind kind : {CollectiveKind::AllToAll, CollectiveKind::AllReduce}) {
    const auto path = [&](std::int64_t bytes) {
      return communication_path(network, {.kind = kind, .bytes = {bytes}}, first(16));
    };
    const CommunicationPath large = path(256 << 20), small = path(1 << 20);
    EXPECT_GT(small.bytes, 0);
    EXPECT_DOUBLE_EQ(large.bytes, 256 * small.bytes);
    EXPECT_DOUBLE_EQ(large.flow.value, 256 * small.flow.value);
    EXPECT_DOUBLE_EQ(large.inside.value, 256 * small.inside.value);
    EXPECT_EQ(large.steps, small.steps);
    EXPECT_EQ(large.step_latency, small.step_latency);
    if (kind == CollectiveKind::AllToAll)
      EXPECT_NEAR(small.inside.value, (1 << 20) * 7.0 / 16 / 450e9, 1e-12);
    else
      EXPECT_EQ(small.inside.value, 0);
  }
}

// Groups, algorithms, numbers of servers and networks have paths of their own, in whatever order they are asked for.
TEST(CommunicationPath, IsOfOneGroupAlgorithmAndNetwork) {
  const Network two(load_cluster("dgx-h100-x2")), other(load_cluster("dgx-a100-x2"));
  const Collective sum = {.kind = CollectiveKind::AllReduce, .bytes = {1 << 26}};
  Collective trees = sum, served = sum;
  trees.algorithm = Algorithm::DoubleTree, trees.servers = 8;
  served.algorithm = Algorithm::ParameterServer;
  const CommunicationPath ring = communication_path(two, sum, first(16));
  EXPECT_NE(communication_path(two, trees, first(16)), ring);
  const CommunicationPath one = communication_path(two, served, first(16));
  served.servers = 4;
  EXPECT_LT(communication_path(two, served, first(16)).flow, one.flow);
  EXPECT_EQ(communication_path(two, sum, first(8)).nodes, 1);
  EXPECT_NE(communication_path(other, sum, first(16)), ring);
  EXPECT_EQ(communication_path(two, sum, first(16)), ring);
}

}  // namespace
}  // namespace foreshard::communication_path_test
