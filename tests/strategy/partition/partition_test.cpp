// Partitions of chains against brute force over all cuts (and replicas), with small whole numbers so that costs are exact.
#include "strategy/partition/partition.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <functional>
#include <random>

#include "core/cluster_file/cluster_file.h"
#include "strategy/estimate/estimate.h"
#include "strategy/tune/tune.h"

namespace foreshard {

// Every way to cut a random chain, on places of different speed and memory, 1000 times.
TEST(Partition, PipelineEqualsBruteForceOnUnequalPlaces) {
  std::mt19937 random(29);
  std::uniform_real_distribution<double> number(0.5, 2);
  int impossible = 0;
  for (int trial = 0; trial < 1000; ++trial) {
    const int layers = 2 + trial % 7, stages = 1 + trial % 4, m = 1 + trial % 5;
    std::vector<ChainLayer> chain(static_cast<std::size_t>(layers));
    for (ChainLayer& layer : chain) layer = {number(random), number(random), 0, number(random), number(random), number(random)};
    std::vector<StagePlace> places(static_cast<std::size_t>(stages));
    for (StagePlace& place : places)
      place = {number(random), (trial % 3 == 0 ? 5 : 20) * number(random), number(random),
               trial % 2 == 0 ? 0 : 3 * number(random)};
    double best = 1e300;
    const auto cut = [&](auto&& self, int stage, int first, double slowest) -> void {
      if (stage == stages) {
        if (first == layers) best = std::min(best, slowest);
        return;
      }
      double time = 0, bytes = 0;
      const StagePlace& place = places[static_cast<std::size_t>(stage)];
      for (int last = first; last < layers; ++last) {
        const ChainLayer& layer = chain[static_cast<std::size_t>(last)];
        time += (layer.forward + layer.backward) * place.slowdown;
        bytes += layer.states + std::min(m, stages - stage) * layer.kept;
        const double hop = stage + 1 < stages ? place.hop + place.hop_per_byte * layer.output : 0;
        if (bytes <= place.capacity) self(self, stage + 1, last + 1, std::max({slowest, time, hop}));
      }
    };
    cut(cut, 0, 0, 0);
    const ChainPartition found = partition_pipeline(chain, places, m);
    if (best == 1e300) {
      EXPECT_TRUE(found.stages.empty());
      ++impossible;
      continue;
    }
    ASSERT_EQ(found.stages.size(), places.size()) << trial;
    EXPECT_NEAR(found.cost, best, 1e-12 * best);
  }
  EXPECT_GT(impossible, 50);
  EXPECT_LT(impossible, 700);
}

// A slow GPU gets fewer layers: four layers of one second each, the second place three times as slow.
TEST(Partition, ASlowPlaceGetsFewerLayers) {
  const std::vector<ChainLayer> four(4, {.forward = 0.4, .backward = 0.6});
  EXPECT_EQ(split_text(partition_pipeline(four, {{1, 1e300}, {3, 1e300}}, 8).stages), "3,1");
  EXPECT_EQ(split_text(partition_pipeline(four, {{1, 1e300}, {1, 1e300}}, 8).stages), "2x2");
}

// Two micro-batches in flight on the first place, one on the last: with 7 bytes per place and 2 per layer and micro-batch the
// first holds one layer.
TEST(Partition, EarlyStagesHoldFewerLayersWhenMemoryBinds) {
  const std::vector<ChainLayer> four(4, {.forward = 1, .backward = 1, .kept = 2});
  EXPECT_EQ(split_text(partition_pipeline(four, {{1, 7}, {1, 7}}, 8).stages), "1,3");
}

// The loss of GPT-2 weighs as much as several layers, and the convolutions of VGG differ: the split by their own times is faster
// than the even one, and never slower where layers are all there is.
TEST(Partition, AutoIsFasterWhereTheEndsAreHeavy) {
  const Cluster cluster = load_cluster("dgx-a100");
  const auto time = [&](const char* model, int pp, const std::string& split) {
    Strategy s;
    s.pp = pp, s.dp = 1, s.batch.global = 32, s.batch.seq = std::string(model).starts_with("gpt2") ? 512 : 0;
    s.pipeline.layer_split = split;
    const auto answer = tuned_plan(load_model(model), cluster, s, {.ignore_memory = true});
    return refine(std::get<Lowered>(answer), cluster).time.value;
  };
  EXPECT_LT(time("gpt2-355m", 8, "auto"), 0.9 * time("gpt2-355m", 8, ""));
  EXPECT_LT(time("gpt2-124m", 4, "auto"), 0.9 * time("gpt2-124m", 4, ""));
  EXPECT_LT(time("vgg-16", 4, "auto"), 0.95 * time("vgg-16", 4, ""));
  EXPECT_EQ(time("gpt2-355m", 1, "auto"), time("gpt2-355m", 1, ""));
}

}  // namespace foreshard
