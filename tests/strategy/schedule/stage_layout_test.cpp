// Layers of stages: counted layers as the split says, the embedding and the head with their neighbours.
#include "strategy/schedule/stage_layout.h"

#include <gtest/gtest.h>

#include <random>

namespace foreshard::stage_layout_test {
namespace {

// embedding, `layers` layers, head: layers 1 .. `layers` of the op graph are counted.
OpGraph chain(int layers) {
  OpGraph graph;
  graph.layers.push_back({.name = "embedding"});
  for (int i = 0; i < layers; ++i) graph.layers.push_back({.name = "layers." + std::to_string(i), .counted = true});
  graph.layers.push_back({.name = "head"});
  return graph;
}

std::vector<int> firsts(int layers, int stages, const std::string& split) {
  const auto answer = stage_layout(chain(layers), stages, split);
  const auto* layout = std::get_if<StageLayout>(&answer);
  return layout ? layout->first : std::vector<int>{};
}

Infeasible refused(int layers, int stages, const std::string& split) {
  const auto answer = stage_layout(chain(layers), stages, split);
  const auto* why = std::get_if<Infeasible>(&answer);
  return why ? *why : Infeasible{"fits"};
}

}  // namespace

//   layer of the graph   0         1 2 3   4 5 6   7
//                        embedding                 head
TEST(StageLayout, EndsJoinTheirNeighbours) {
  EXPECT_EQ(firsts(6, 2, ""), (std::vector<int>{0, 4, 8}));
  EXPECT_EQ(firsts(6, 3, "1,3,2"), (std::vector<int>{0, 2, 5, 8}));
  EXPECT_EQ(firsts(6, 1, ""), (std::vector<int>{0, 8}));
}

// A first stage without counted layers holds the embedding, a last one the head. A layer list has neither, so such a stage would be empty.
TEST(StageLayout, StagesWithoutCountedLayers) {
  EXPECT_EQ(firsts(6, 3, "0,6,0"), (std::vector<int>{0, 1, 7, 8}));
  OpGraph list = chain(6);
  list.layers.erase(list.layers.begin()), list.layers.pop_back();
  for (const auto& [split, empty] : {std::pair{"0,3,3", 0}, {"3,3,0", 2}}) {
    const auto answer = stage_layout(list, 3, split);
    ASSERT_TRUE(std::holds_alternative<Infeasible>(answer)) << split;
    EXPECT_EQ(std::get<Infeasible>(answer).reason, "stage " + std::to_string(empty) + " would hold no layer");
  }
}

TEST(StageLayout, WhatDoesNotAddUpIsRefused) {
  EXPECT_EQ(refused(6, 3, "3,3").reason, "layer split \"3,3\" names 2 stages, the strategy has 3");
  EXPECT_EQ(refused(6, 2, "3,4").reason, "layer split \"3,4\" adds up to 7 layers, the model has 6");
  // 7 = 4 + 3 layers on two stages; 7 is a prime, so the next even choice is one stage.
  const Infeasible uneven = refused(7, 2, "");
  EXPECT_EQ(uneven.reason, "7 layers do not divide evenly over 2 pipeline stages (7 / 2 = 3, remainder 1)");
  EXPECT_EQ(uneven.would_help, (std::vector<std::string>{"--layer-split 4x1,3x1", "1 stage (7 layers each)"}));
}

// Every split into positive numbers: stage s holds as many counted layers as the split says, and every layer is in one stage.
TEST(StageLayout, StagesHoldWhatTheSplitSays) {
  std::mt19937 random(2);
  for (int trial = 0; trial < 200; ++trial) {
    const int stages = 1 + static_cast<int>(random() % 6);
    std::vector<int> counts;
    std::string split;
    int layers = 0;
    for (int s = 0; s < stages; ++s) {
      counts.push_back(1 + static_cast<int>(random() % 5)), layers += counts.back();
      split += (s > 0 ? "," : "") + std::to_string(counts.back());
    }
    const OpGraph graph = chain(layers);
    const std::vector<int> first = firsts(layers, stages, split);
    ASSERT_EQ(first.size(), counts.size() + 1) << split;
    EXPECT_EQ(first.front(), 0);
    EXPECT_EQ(first.back(), layers + 2);
    for (std::size_t s = 0; s < counts.size(); ++s) {
      int counted = 0;
      for (int l = first[s]; l < first[s + 1]; ++l) counted += graph.layers[static_cast<std::size_t>(l)].counted ? 1 : 0;
      EXPECT_EQ(counted, counts[s]) << split;
    }
  }
}

}  // namespace foreshard::stage_layout_test
