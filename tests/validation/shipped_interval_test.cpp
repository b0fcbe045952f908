// Intervals of single predictions, from shipped residuals.
#include "validation/shipped_interval.h"

#include <gtest/gtest.h>

#include "core/cluster_file/cluster_file.h"

namespace foreshard {
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

TEST(ShippedInterval, AnUnknownFrameworkGetsTheIntervalOfAllCells) {
  const auto known = interval_of(load_cluster("dgx-h100"), {.framework = "megatron"}, false, {1});
  const auto unknown = interval_of(load_cluster("dgx-h100"), {.framework = "no-such"}, false, {1});
  ASSERT_TRUE(known && unknown);
  EXPECT_TRUE(unknown->extrapolated);
}

}  // namespace
}  // namespace foreshard
