// Whether a cluster has the GPUs of a saved plan.
#include "core/check/plan_cluster.h"

#include <gtest/gtest.h>

#include "tests/core/support_plan.h"

namespace foreshard::plan_cluster_test {
namespace {

Cluster nodes_of(const std::string& gpu, int gpus, int count) {
  return {.name = "lab", .nodes = {{.shape = {.gpu = gpu, .gpus = gpus}, .count = count}}};
}
// Two roles, dp 2: four ranks.
Plan plan_for(const std::string& first, const std::string& second) {
  Plan plan = small_plan();
  plan.roles[0].device_kind = first, plan.roles[1].device_kind = second;
  return plan;
}

}  // namespace

TEST(PlanCluster, EnoughGpusOfTheKind) {
  EXPECT_EQ(gpus_differ(plan_for("a100-80", "a100-80"), nodes_of("a100-80", 2, 2)), "");
  EXPECT_EQ(gpus_differ(plan_for("a100-80", "a100-80"), nodes_of("a100-80", 8, 1)), "");
}

TEST(PlanCluster, AnotherKind) {
  EXPECT_EQ(gpus_differ(plan_for("a100-80", "a100-80"), nodes_of("h100-80", 8, 1)),
            "plan is for a100-80, cluster lab has h100-80");
  EXPECT_EQ(gpus_differ(plan_for("a100-80", "v100"), nodes_of("a100-80", 8, 1)),
            "plan is for a100-80 and v100, cluster lab has a100-80");
  Cluster both = nodes_of("a100-80", 2, 1);
  both.nodes.push_back({.shape = {.gpu = "v100", .gpus = 2}});
  EXPECT_EQ(gpus_differ(plan_for("a100-80", "v100"), both), "");
}

TEST(PlanCluster, TooFew) {
  EXPECT_EQ(gpus_differ(plan_for("a100-80", "a100-80"), nodes_of("a100-80", 3, 1)), "plan is for 4 GPUs, cluster lab has 3");
}

// Ranks that name their devices may share them.
TEST(PlanCluster, NamedDevicesMayBeShared) {
  Plan plan = plan_for("a100-80", "a100-80");
  plan.placement.explicit_devices = {DeviceId{0}, DeviceId{0}, DeviceId{0}, DeviceId{0}};
  EXPECT_EQ(gpus_differ(plan, nodes_of("a100-80", 1, 1)), "");
}

// An axis of a size that no cluster has, three times: the product does not overflow.
TEST(PlanCluster, AxesOfAPlanThatIsNotSound) {
  Plan plan = plan_for("a100-80", "a100-80");
  for (Axis& axis : plan.axes) axis.size = 2'000'000'000;
  plan.roles[0].axes = {AxisId{0}, AxisId{0}, AxisId{0}, AxisId{77}};
  EXPECT_NE(gpus_differ(plan, nodes_of("a100-80", 8, 1)).find(", cluster lab has 8"), std::string::npos);
}

}  // namespace foreshard::plan_cluster_test
