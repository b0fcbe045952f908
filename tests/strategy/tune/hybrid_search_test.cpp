// The search for stages with degrees of their own, judged by a formula instead of a simulator.
#include "strategy/tune/hybrid_search.h"

#include <gtest/gtest.h>

#include <algorithm>

namespace foreshard::hybrid_search_test {
namespace {

// The slowest stage sets the time: layers / (replicas * tensor ranks).
std::optional<double> slowest(const Strategy& strategy) {
  double most = 0;
  for (const StageDegrees& stage : strategy.stages)
    most = std::max(most, static_cast<double>(stage.layers) / (stage.dp * stage.tp));
  return most;
}

JudgeStrategies by(std::optional<double> (*one)(const Strategy&)) {
  return [one](const std::vector<Strategy>& all) {
    std::vector<std::optional<double>> seconds;
    for (const Strategy& strategy : all) seconds.push_back(one(strategy));
    return seconds;
  };
}

Strategy with(std::vector<StageDegrees> stages, std::int64_t micro = 1) {
  Strategy strategy;
  strategy.stages = std::move(stages), strategy.batch = {.micro = micro, .global = 8 * micro};
  return strategy;
}

// All ways to lay `layers` out over one stage, or over two with replicas of one rank.
double best_by_force(int layers, int devices) {
  double best = 1e300;
  for (int first = 0; first < layers; ++first)
    for (int a = 1; a <= devices; a *= 2)
      for (int b = 1; b <= devices; b *= 2) {
        if (first > 0 && a + b <= devices) best = std::min(best, *slowest(with({{first, a, 1}, {layers - first, b, 1}})));
        if (first == 0 && a <= devices) best = std::min(best, *slowest(with({{layers, a, 1}})));
      }
  return best;
}

}  // namespace

// On two devices every split of n layers can be improved until both have half of them: one stage on both, or two stages that differ by at
// most a layer.
TEST(HybridSearch, WalksToTheOptimum) {
  for (int layers = 2; layers <= 12; ++layers)
    for (int first = 1; first < layers; ++first) {
      const Strategy start = with({{first, 1, 1}, {layers - first, 1, 1}});
      const auto found = improve_stages({start}, {.devices = 2, .steps = 500, .at_once = 50}, by(slowest));
      ASSERT_TRUE(found);
      EXPECT_DOUBLE_EQ(found->seconds, best_by_force(layers, 2)) << first << " of " << layers;
      EXPECT_DOUBLE_EQ(*slowest(found->strategy), found->seconds);
      EXPECT_GE(found->judged, 1);
    }
}

// On more devices steps may end at a local optimum, but never behind the best proposal.
TEST(HybridSearch, IsNeverSlowerThanAProposal) {
  for (int first = 1; first < 9; ++first) {
    const std::vector<Strategy> proposals = {with({{first, 1, 1}, {9 - first, 2, 1}}),
                                             with({{first, 2, 1}, {9 - first, 1, 1}})};
    const auto found = improve_stages(proposals, {.devices = 4, .steps = 500}, by(slowest));
    ASSERT_TRUE(found);
    EXPECT_LE(found->seconds, std::min(*slowest(proposals[0]), *slowest(proposals[1])));
    EXPECT_GE(found->seconds, 9.0 / 4);
  }
}

TEST(HybridSearch, WithoutStepsItIsTheBestProposal) {
  const std::vector<Strategy> proposals = {with({{5, 1, 1}, {1, 1, 1}}), with({{4, 1, 1}, {2, 1, 1}}), with({{6, 1, 1}})};
  const auto found = improve_stages(proposals, {.devices = 4, .walks = 2, .steps = 0}, by(slowest));
  ASSERT_TRUE(found);
  EXPECT_EQ(found->strategy, proposals[1]);
  EXPECT_EQ(found->seconds, 4);
  EXPECT_EQ(found->judged, 3);
}

// Cells bound what is judged: 16 cells are one strategy of two stages and eight micro-batches.
TEST(HybridSearch, CellsLimitTheSteps) {
  const auto found = improve_stages({with({{5, 1, 1}, {1, 1, 1}})}, {.devices = 4, .steps = 100, .cells = 16}, by(slowest));
  ASSERT_TRUE(found);
  EXPECT_EQ(found->judged, 1 + 1);  // the proposal, and one step
}

TEST(HybridSearch, WhatCannotRunIsNoAnswer) {
  const auto never = [](const Strategy&) { return std::optional<double>{}; };
  EXPECT_FALSE(improve_stages({with({{6, 1, 1}})}, {.devices = 4}, by(never)));
  // Only stages of one rank can run.
  const auto single = [](const Strategy& s) {
    const bool runs = std::ranges::all_of(s.stages, [](const StageDegrees& stage) { return stage.dp * stage.tp == 1; });
    return runs ? slowest(s) : std::nullopt;
  };
  const auto found =
      improve_stages({with({{6, 2, 1}}), with({{5, 1, 1}, {1, 1, 1}})}, {.devices = 2, .steps = 100}, by(single));
  ASSERT_TRUE(found);
  EXPECT_EQ(found->strategy.stages, (std::vector<StageDegrees>{{3, 1, 1}, {3, 1, 1}}));
}

// Walks begin at proposals that differ in their number of stages or micro-batch: the second of two equal ones begins none. A walk's
// first step of a strategy is judged right after the proposals.
TEST(HybridSearch, WalksBeginApart) {
  std::vector<std::size_t> calls;
  std::vector<std::int64_t> micro;
  const auto judge = [&](const std::vector<Strategy>& all) {
    if (!calls.empty()) micro.push_back(all.front().batch.micro);
    calls.push_back(all.size());
    return std::vector<std::optional<double>>(all.size(), 1.0);  // no step is faster
  };
  improve_stages({with({{3, 1, 1}, {3, 1, 1}}), with({{4, 1, 1}, {2, 1, 1}}), with({{3, 1, 1}, {3, 1, 1}}, 2)},
                 {.devices = 2, .walks = 2, .steps = 1}, judge);
  EXPECT_EQ(calls.front(), 3U);
  EXPECT_EQ(micro, (std::vector<std::int64_t>{1, 2}));
}

TEST(HybridSearch, StagesOfAStrategy) {
  Strategy strategy{.dp = 2, .tp = 4, .pp = 2};
  EXPECT_EQ(stages_of(strategy, 6), (std::vector<StageDegrees>{{3, 2, 4}, {3, 2, 4}}));
  strategy.pipeline.layer_split = "4,2";
  EXPECT_EQ(stages_of(strategy, 6), (std::vector<StageDegrees>{{4, 2, 4}, {2, 2, 4}}));
  strategy.stages = {{6, 1, 1}};
  EXPECT_EQ(stages_of(strategy, 6), strategy.stages);
  // What does not divide is split nearly evenly, and adds up.
  int layers = 0;
  for (const StageDegrees& stage : stages_of({.dp = 1, .tp = 1, .pp = 4}, 10)) layers += stage.layers;
  EXPECT_EQ(layers, 10);
}

}  // namespace foreshard::hybrid_search_test
