#include "strategy/partition/partition_dag.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <random>

#include "core/base/error.h"

namespace foreshard::partition_dag_test {

namespace {

// Every layer on every stage, by counting in base `stages`.
double brute_force(const std::vector<DagLayer>& graph, const std::vector<StagePlace>& places, int m, double bandwidth) {
  const int layers = static_cast<int>(graph.size()), stages = static_cast<int>(places.size());
  std::vector<int> on(graph.size(), 0);
  double best = 1e300;
  for (;;) {
    bool forward = true;
    std::vector<double> time(places.size()), bytes(places.size()), link(places.size());
    std::vector<int> count(places.size());
    for (int i = 0; i < layers; ++i) {
      const auto s = static_cast<std::size_t>(on[static_cast<std::size_t>(i)]);
      const ChainLayer& cost = graph[static_cast<std::size_t>(i)].cost;
      time[s] += places[s].slowdown * (cost.forward + cost.backward);
      bytes[s] += cost.states + std::min(m, stages - static_cast<int>(s)) * cost.kept;
      ++count[s];
      int last_reader = static_cast<int>(s);
      for (std::size_t reader = 0; reader < graph.size(); ++reader)
        for (const int input : graph[reader].inputs)
          if (input == i) last_reader = std::max(last_reader, on[reader]), forward &= on[reader] >= static_cast<int>(s);
      for (int cut = static_cast<int>(s) + 1; cut <= last_reader; ++cut)
        link[static_cast<std::size_t>(cut)] += 2 * cost.output / bandwidth;
    }
    bool fits = forward && std::find(count.begin(), count.end(), 0) == count.end();
    for (std::size_t s = 0; s < places.size(); ++s) fits &= bytes[s] <= places[s].capacity;
    if (fits)
      best = std::min(best, std::max(*std::max_element(time.begin(), time.end()), *std::max_element(link.begin(), link.end())));
    int digit = 0;
    while (digit < layers && ++on[static_cast<std::size_t>(digit)] == stages) on[static_cast<std::size_t>(digit++)] = 0;
    if (digit == layers) return best;
  }
}

}  // namespace

TEST(PartitionDag, EqualsBruteForceOnAThousandRandomGraphs) {
  std::mt19937 random(31);
  std::uniform_real_distribution<double> number(0.5, 2);
  int impossible = 0;
  for (int trial = 0; trial < 1000; ++trial) {
    const int layers = 2 + trial % 6, stages = 1 + trial % 3, m = 1 + trial % 4;
    std::vector<DagLayer> graph(static_cast<std::size_t>(layers));
    for (int i = 0; i < layers; ++i) {
      DagLayer& layer = graph[static_cast<std::size_t>(i)];
      layer.cost = {number(random), number(random), 0, number(random), number(random), number(random)};
      for (int input = 0; input < i; ++input)
        if (std::uniform_int_distribution<int>(0, 2)(random) == 0) layer.inputs.push_back(input);
    }
    std::vector<StagePlace> places(static_cast<std::size_t>(stages));
    for (StagePlace& place : places) place = {number(random), (trial % 4 == 0 ? 6 : 30) * number(random)};
    const double bandwidth = number(random), best = brute_force(graph, places, m, bandwidth);
    const DagPartition found = partition_dag(graph, places, m, bandwidth);
    EXPECT_TRUE(found.exact);
    impossible += best == 1e300 ? 1 : 0;
    ASSERT_EQ(found.stages.empty(), best == 1e300) << trial;
    if (found.stages.empty()) continue;
    ASSERT_NEAR(found.cost, best, 1e-12 * best) << trial;
  }
  EXPECT_GT(impossible, 30);
  EXPECT_LT(impossible, 700);
}

// A chain has one closed set per layer: the same as partition_pipeline.
TEST(PartitionDag, OnAChainItIsThePipelinePartition) {
  std::vector<DagLayer> graph(40);
  std::vector<ChainLayer> chain(40);
  for (int i = 0; i < 40; ++i) {
    const auto at = static_cast<std::size_t>(i);
    chain[at] = graph[at].cost = {.forward = 1 + 0.1 * (i % 7), .backward = 2 + 0.2 * (i % 5), .kept = 1};
    if (i > 0) graph[at].inputs = {i - 1};
  }
  const std::vector<StagePlace> places(5, {1, 40});
  EXPECT_NEAR(partition_dag(graph, places, 8, 1).cost, partition_pipeline(chain, places, 8).cost, 1e-9);
}

// Two branches of one second each between a head and a tail: a stage per branch is possible, though no order of the layers has a
// single value at the cut between them.
TEST(PartitionDag, BranchesMayBeStages) {
  const auto layer = [](double time, std::vector<int> inputs) {
    return DagLayer{{.forward = time, .output = 1}, std::move(inputs)};
  };
  const std::vector<DagLayer> diamond = {layer(0.1, {}), layer(1, {0}), layer(1, {0}), layer(0.1, {1, 2})};
  const DagPartition found = partition_dag(diamond, std::vector<StagePlace>(2), 4, 100);
  EXPECT_DOUBLE_EQ(found.cost, 1.1);
  EXPECT_EQ(found.stages.front().size(), 2u);
}

TEST(PartitionDag, TooManySetsLeaveOneOrderAndCyclesAreRefused) {
  std::vector<DagLayer> wide(20);  // 2^20 closed sets
  for (DagLayer& layer : wide) layer.cost.forward = 1;
  const DagPartition found = partition_dag(wide, std::vector<StagePlace>(4), 4, 1);
  EXPECT_FALSE(found.exact);
  EXPECT_EQ(found.cost, 5);
  EXPECT_THROW(partition_dag({{{}, {1}}, {{}, {0}}}, std::vector<StagePlace>(1), 1, 1), Error);
}

}  // namespace foreshard::partition_dag_test
