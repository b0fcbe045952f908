// Partitions of chains against brute force over all cuts (and replicas), with small whole numbers so that costs are exact.
#include "strategy/partition.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <functional>
#include <random>

namespace foreshard {

namespace {

std::vector<ChainLayer> chain(std::mt19937& random, int layers) {
  std::uniform_int_distribution<int> number(1, 9), size(0, 24);
  std::vector<ChainLayer> result;
  for (int i = 0; i < layers; ++i)
    result.push_back({static_cast<double>(number(random)), static_cast<double>(number(random)),
                      static_cast<double>(size(random)), static_cast<double>(size(random))});
  return result;
}

// Every way to cut `layers` into stages with at most `devices` replicas in all.
void for_each_partition(int layers, int devices, int most_replicas,
                        const std::function<void(const std::vector<ChainStage>&)>& visit) {
  std::vector<ChainStage> stages;
  const std::function<void(int, int)> extend = [&](int first, int left) {
    if (first == layers) return visit(stages);
    for (int last = first + 1; last <= layers; ++last)
      for (int replicas = 1; replicas <= std::min(left, most_replicas); ++replicas) {
        stages.push_back({first, last, replicas});
        extend(last, left - replicas);
        stages.pop_back();
      }
  };
  extend(0, devices);
}

bool covers(const std::vector<ChainStage>& stages, int layers) {
  int next = 0;
  for (const ChainStage& stage : stages) {
    if (stage.first != next || stage.last <= stage.first) return false;
    next = stage.last;
  }
  return next == layers;
}

}  // namespace

TEST(Partition, BottleneckEqualsBruteForce) {
  std::mt19937 random(11);
  for (int trial = 0; trial < 1000; ++trial) {
    const int layers = 1 + trial % 6, devices = 1 + trial / 6 % 4;
    const double bandwidth = 1 + trial % 5;
    const auto layer = chain(random, layers);
    double best = 1e300;
    for_each_partition(layers, devices, devices,
                       [&](const auto& stages) { best = std::min(best, bottleneck_cost(layer, stages, bandwidth)); });
    const ChainPartition found = partition_bottleneck(layer, devices, bandwidth);
    ASSERT_NEAR(found.cost, best, 1e-12 * best) << trial;
    ASSERT_TRUE(covers(found.stages, layers));
    ASSERT_NEAR(bottleneck_cost(layer, found.stages, bandwidth), best, 1e-12 * best);
  }
}

TEST(Partition, GPipeEqualsBruteForce) {
  std::mt19937 random(12);
  for (int trial = 0; trial < 1000; ++trial) {
    const int layers = 1 + trial % 8, stages = 1 + trial % layers, m = 1 + trial % 7;
    const auto layer = chain(random, layers);
    double best = 1e300;
    for_each_partition(layers, stages, 1, [&](const auto& cut) {
      if (static_cast<int>(cut.size()) == stages) best = std::min(best, gpipe_cost(layer, cut, m));
    });
    const ChainPartition found = partition_gpipe(layer, stages, m);
    ASSERT_EQ(found.cost, best) << trial;
    ASSERT_TRUE(covers(found.stages, layers));
    ASSERT_EQ(found.stages.size(), static_cast<std::size_t>(stages));
  }
}

// PipeDream's formula by hand: f + b = 8, 12 bytes of weights at 1 byte/s on two replicas: (8 + 4 * 1/2 * 12) / 2 = 16, so one
// device, 8, is better. Without weights two replicas take 4.
TEST(Partition, ReplicasPayForTheirGradients) {
  EXPECT_EQ(bottleneck_cost({{3, 5, 12, 0}}, {{0, 1, 2}}, 1), 16);
  EXPECT_EQ(partition_bottleneck({{3, 5, 12, 0}}, 2, 1).cost, 8);
  EXPECT_EQ(partition_bottleneck({{3, 5, 0, 0}}, 2, 1).cost, 4);
}

// Never worse than data parallelism or an equal split: both are partitions that it looks at.
TEST(Partition, NeverWorseThanDataParallelOrEqualSplit) {
  std::mt19937 random(13);
  for (int trial = 0; trial < 100; ++trial) {
    const auto layer = chain(random, 8);
    const double found = partition_bottleneck(layer, 4, 3).cost;
    EXPECT_LE(found, bottleneck_cost(layer, {{0, 8, 4}}, 3));
    EXPECT_LE(found, bottleneck_cost(layer, {{0, 2, 1}, {2, 4, 1}, {4, 6, 1}, {6, 8, 1}}, 3));
  }
}

TEST(Partition, MoreStagesThanLayersIsNoPartition) {
  EXPECT_TRUE(partition_gpipe({{1, 1, 0, 0}}, 2, 4).stages.empty());
  EXPECT_TRUE(partition_bottleneck({}, 2, 1).stages.empty());
}

}  // namespace foreshard
