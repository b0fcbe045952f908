// Intervals of single predictions, from shipped residuals.
#include "validation/shipped_interval.h"

#include <gtest/gtest.h>

#include <cmath>

#include "core/cluster_file/cluster_file.h"

namespace foreshard::shipped_interval_test {
namespace {

TEST(ShippedInterval, HoldsAroundThePredictionAndGrowsWithIt) {
  const Cluster cluster = load_cluster("dgx-h100");
  const auto one = interval_of(cluster, {.framework = "megatron"}, false, {1}),
             two = interval_of(cluster, {.framework = "megatron"}, false, {2});
  ASSERT_TRUE(one && two);
  EXPECT_LT(one->low.value, one->high.value);
  EXPECT_NEAR(two->low.value, 2 * one->low.value, 1e-12);
  EXPECT_NEAR(two->high.value, 2 * one->high.value, 1e-12);
}

// No published run tells how sure a prediction for a host is; nor is there anything to learn from where no profile learned.
TEST(ShippedInterval, NothingWhereNothingIsKnown) {
  Cluster host = load_cluster("dgx-h100");
  for (Gpu& gpu : host.gpus) gpu.architecture = "host";
  EXPECT_FALSE(interval_of(host, {}, false, {1}));
  EXPECT_FALSE(learned_interval(nullptr, {}, host, {1}));
}

// A B300 takes the products of B200, GB200 and GB300: the interval widens by what these differ, and names them.
TEST(ShippedInterval, WidensWhereProductsWereNotMeasured) {
  Cluster cluster = load_cluster("dgx-b200");
  const auto measured = interval_of(cluster, {.framework = "megatron"}, false, {1});
  cluster.gpus.front().name = cluster.nodes.front().shape.gpu = "b300";
  const auto others = interval_of(cluster, {.framework = "megatron"}, false, {1});
  ASSERT_TRUE(measured && others);
  EXPECT_EQ(measured->rates_of, std::vector<std::string>{"b200"});
  EXPECT_EQ(measured->rates_spread, 0);
  EXPECT_EQ(others->rates_of, (std::vector<std::string>{"b200", "gb200", "gb300"}));
  const double wide = 1.6449 * others->rates_spread;
  EXPECT_GT(wide, 0.03);
  EXPECT_NEAR(std::log(others->high.value), std::hypot(std::log(measured->high.value), wide), 1e-9);
  EXPECT_NEAR(std::log(others->low.value), -std::hypot(std::log(measured->low.value), wide), 1e-9);
}

TEST(ShippedInterval, AnUnknownFrameworkGetsTheIntervalOfAllCells) {
  const auto known = interval_of(load_cluster("dgx-h100"), {.framework = "megatron"}, false, {1});
  const auto unknown = interval_of(load_cluster("dgx-h100"), {.framework = "no-such"}, false, {1});
  ASSERT_TRUE(known && unknown);
  EXPECT_TRUE(unknown->extrapolated);
}

}  // namespace
}  // namespace foreshard::shipped_interval_test
