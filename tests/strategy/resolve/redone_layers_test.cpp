// Recomputation that names or counts layers, against the layers that exist.
#include "strategy/resolve/redone_layers.h"

#include <gtest/gtest.h>

namespace foreshard::redone_layers_test {
namespace {

// embedding, six layers, head on two stages: | 0 1 2 3 | 4 5 6 7 |, three counted layers on each.
OpGraph six_layers() {
  OpGraph graph;
  for (int i = 0; i < 8; ++i) graph.layers.push_back({.name = std::to_string(i), .counted = i > 0 && i < 7});
  return graph;
}
const StageLayout kTwoStages{.first = {0, 4, 8}};

std::string refusal(const Recompute& recompute, const StageLayout& layout = kTwoStages, int pp = 2) {
  const auto why = refuse_layers(recompute, six_layers(), layout, pp);
  return why ? why->reason : "";
}
Recompute full(std::vector<int> per_stage, std::vector<int> only = {}) {
  return {.kind = RecomputeKind::Full, .per_stage = std::move(per_stage), .only = std::move(only)};
}

}  // namespace

TEST(RedoneLayers, EmbeddingAndHeadAreNotCounted) {
  EXPECT_EQ(counted_layers(six_layers(), kTwoStages, 0), 3);
  EXPECT_EQ(counted_layers(six_layers(), {.first = {0, 1, 6, 8}}, 0), 0);
  EXPECT_EQ(counted_layers(six_layers(), {.first = {0, 1, 6, 8}}, 1), 5);
}

TEST(RedoneLayers, WhatFits) {
  EXPECT_EQ(refusal(full({3, 0})), "");
  EXPECT_EQ(refusal(full({}, {0, 5})), "");
  EXPECT_EQ(refusal({.kind = RecomputeKind::Full, .layers = 99}), "");  // at most those that there are
  EXPECT_EQ(refusal({.kind = RecomputeKind::Each, .each = std::vector<LayerRecompute>(6)}), "");
  EXPECT_EQ(refusal({.kind = RecomputeKind::Selective, .per_stage = {9, 9, 9}}), "");  // of other kinds nothing is counted
}

TEST(RedoneLayers, MoreThanAStageHas) {
  EXPECT_EQ(refusal(full({3, 4})), "recompute full:3,4 asks for 4 layers of stage 1, which has 3");
}

TEST(RedoneLayers, LayersThatTheModelDoesNotHave) {
  EXPECT_EQ(refusal(full({}, {0, 6})),
            "recompute " + to_text(full({}, {0, 6})) + " names layer 6, the model has layers 0 to 5");
  const Recompute each{.kind = RecomputeKind::Each, .each = std::vector<LayerRecompute>(5)};
  EXPECT_EQ(refusal(each), "recompute " + to_text(each) + " names 5 layers, the model has 6");
}

// Four stages on two ranks: a number for each stage, or for each rank, whose stages then all redo as many.
TEST(RedoneLayers, NumbersForStagesOrForRanks) {
  const StageLayout four{.first = {0, 2, 4, 6, 8}};  // counted: 1, 2, 2, 1
  EXPECT_EQ(refusal(full({1, 2, 2, 1}), four), "");
  EXPECT_EQ(refusal(full({9, 9}), four), "");
  EXPECT_EQ(refusal(full({1, 2, 3, 1}), four), "recompute full:1,2,3,1 asks for 3 layers of stage 2, which has 2");
  EXPECT_EQ(refusal(full({1, 2, 2}), four),
            "recompute " + to_text(full({1, 2, 2})) + " names 3 stages, the strategy has 4 on 2 ranks");
}

}  // namespace foreshard::redone_layers_test
