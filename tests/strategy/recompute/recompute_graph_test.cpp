#include "strategy/recompute/recompute_graph.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <random>

#include "tests/strategy/support_recompute_exact.h"

namespace foreshard::recompute_graph_test {

namespace {

std::vector<RecomputeNode> random_graph(std::mt19937& random, int nodes) {
  std::vector<RecomputeNode> graph(static_cast<std::size_t>(nodes));
  for (int i = 0; i < nodes; ++i) {
    RecomputeNode& node = graph[static_cast<std::size_t>(i)];
    node.seconds = std::uniform_int_distribution<int>(1, 5)(random),
    node.bytes = std::uniform_int_distribution<int>(1, 4)(random);
    for (int input = 0; input < i; ++input)
      if (input + 1 == i || std::uniform_int_distribution<int>(0, 3)(random) == 0) node.inputs.push_back(input);
  }
  return graph;
}

// Forwards, perhaps past one another, and a backward for each, which reads its forward's inputs and the backward after it.
std::vector<RecomputeNode> training_graph(std::mt19937& random, int forwards) {
  std::vector<RecomputeNode> graph = random_graph(random, forwards);
  for (int i = forwards; i-- > 0;) {
    RecomputeNode node{.seconds = 2 * graph[static_cast<std::size_t>(i)].seconds, .bytes = 1};
    node.inputs = graph[static_cast<std::size_t>(i)].inputs;
    node.inputs.push_back(static_cast<int>(graph.size()) - 1);
    std::sort(node.inputs.begin(), node.inputs.end());
    node.inputs.erase(std::unique(node.inputs.begin(), node.inputs.end()), node.inputs.end());
    graph.push_back(node);
  }
  return graph;
}

// Plays a schedule with a plain list of what is in memory: every input is there, and the first time of each node is its stage.
void check(const std::vector<RecomputeNode>& graph, const GraphSchedule& schedule) {
  std::vector<bool> memory(graph.size(), false);
  for (std::size_t t = 0; t < graph.size(); ++t) {
    for (std::size_t i = 0; i < graph.size(); ++i) {
      ASSERT_TRUE(!schedule.keep[t][i] || memory[i]) << "kept what was not there";
      memory[i] = schedule.keep[t][i];
    }
    for (std::size_t k = 0; k < graph.size(); ++k) {
      if (!schedule.compute[t][k]) continue;
      ASSERT_LE(k, t);
      for (const int input : graph[k].inputs) ASSERT_TRUE(memory[static_cast<std::size_t>(input)]);
      memory[k] = true;
    }
    ASSERT_TRUE(schedule.compute[t][t]);
  }
}

int everything(const std::vector<RecomputeNode>& graph) { return recompute_greedy(graph, 1 << 20).peak; }

}  // namespace

// All ways to keep values, by counting: 2^10 for five nodes.
TEST(RecomputeGraph, TheExactOneEqualsEveryWayToKeep) {
  std::mt19937 random(41);
  int feasible = 0;
  for (int trial = 0; trial < 1200; ++trial) {
    const int nodes = 3 + trial % 3;
    const auto graph = random_graph(random, nodes);
    const int budget = everything(graph) - trial % 4;
    double best = 1e300;
    const unsigned bits = static_cast<unsigned>(nodes * (nodes - 1) / 2);
    for (unsigned ways = 0; ways < 1U << bits; ++ways) {
      std::vector<std::vector<bool>> keep(static_cast<std::size_t>(nodes),
                                          std::vector<bool>(static_cast<std::size_t>(nodes), false));
      unsigned bit = 0;
      for (std::size_t t = 1; t < keep.size(); ++t)
        for (std::size_t i = 0; i < t; ++i) keep[t][i] = (ways >> bit++ & 1U) != 0;
      const GraphSchedule schedule = schedule_of(graph, keep);
      if (schedule.peak <= budget) best = std::min(best, schedule.seconds);
    }
    const ExactSchedule exact = recompute_exact(graph, budget);
    ASSERT_EQ(exact.keep.empty(), best == 1e300) << trial;
    if (exact.keep.empty()) continue;
    ++feasible;
    ASSERT_DOUBLE_EQ(exact.seconds, best) << trial;
    ASSERT_LE(exact.peak, budget);
    check(graph, exact);
  }
  EXPECT_GT(feasible, 300);
  EXPECT_LT(feasible, 1200);
}

// The shortest way through all kept sets, stage by stage. `steps`: from one set to the next, that it looked at.
static double every_kept_set(const std::vector<RecomputeNode>& graph, int budget, std::int64_t& steps) {
  const std::size_t nodes = graph.size();
  std::vector<double> seconds(1, 0);
  const auto row = [&](unsigned set) {
    std::vector<bool> kept(nodes, false);
    for (std::size_t i = 0; i < nodes; ++i) kept[i] = (set >> i & 1U) != 0;
    return kept;
  };
  for (std::size_t t = 0; t < nodes; ++t) {
    std::vector<double> after(t + 1 == nodes ? 1 : std::size_t{2} << t, 1e300);
    for (unsigned kept = 0; kept < seconds.size(); ++kept)
      for (unsigned next = 0; next < after.size() && seconds[kept] < 1e300; ++next) {
        ++steps;
        std::vector<bool> run(nodes, false), there = row(kept), leave = row(next);
        run[t] = true;
        for (std::size_t i = 0; i <= t; ++i) run[i] = run[i] || (leave[i] && !there[i]);
        for (std::size_t i = t + 1; i-- > 0;)
          for (const int input : run[i] ? graph[i].inputs : std::vector<int>{})
            if (!there[static_cast<std::size_t>(input)]) run[static_cast<std::size_t>(input)] = true;
        double total = seconds[kept];
        int peak = 0;
        std::vector<bool> memory = there;
        for (int k = -1; k <= static_cast<int>(t); ++k) {
          if (k >= 0 && !run[static_cast<std::size_t>(k)]) continue;
          if (k >= 0) memory[static_cast<std::size_t>(k)] = true, total += graph[static_cast<std::size_t>(k)].seconds;
          const auto read_from = [&](std::size_t i, int first) {
            for (std::size_t j = static_cast<std::size_t>(std::max(0, first)); j <= t; ++j)
              if (run[j] && std::count(graph[j].inputs.begin(), graph[j].inputs.end(), static_cast<int>(i)) > 0) return true;
            return false;
          };
          int bytes = 0;
          for (std::size_t i = 0; i <= t; ++i)
            if (memory[i] && (leave[i] || read_from(i, k) || static_cast<int>(i) == k)) bytes += graph[i].bytes;
          peak = std::max(peak, bytes);
        }
        if (peak <= budget) after[next] = std::min(after[next], total);
      }
    seconds = after;
  }
  return seconds[0];
}

// Trainings of eight nodes: the same seconds, and far fewer steps looked at, because most cannot be better than what is known.
TEST(RecomputeGraph, TheBoundLeavesMostStepsAlone) {
  std::mt19937 random(47);
  std::int64_t visited = 0, steps = 0;
  int feasible = 0;
  for (int trial = 0; trial < 300; ++trial) {
    const auto graph = training_graph(random, trial % 30 == 0 ? 4 : 3);
    const int budget = everything(graph) - 1 - trial % 3;
    const double best = every_kept_set(graph, budget, steps);
    const ExactSchedule exact = recompute_exact(graph, budget);
    visited += exact.visited;
    ASSERT_EQ(exact.keep.empty(), best == 1e300) << trial;
    if (exact.keep.empty()) continue;
    ++feasible;
    ASSERT_DOUBLE_EQ(exact.seconds, best) << trial;
  }
  EXPECT_GT(feasible, 100);
  EXPECT_GT(visited, 0);
  std::printf("steps: %lld of %lld\n", static_cast<long long>(visited), static_cast<long long>(steps));
  EXPECT_LT(visited * 5, steps);
}

// Never below the optimum, inside the budget, valid; 1000 trainings of six or eight nodes.
TEST(RecomputeGraph, GreedyIsNearTheOptimum) {
  std::mt19937 random(43);
  double sum = 0, worst = 1;
  int both = 0, only_exact = 0, beaten = 0;
  for (int trial = 0; trial < 1000; ++trial) {
    const auto graph = training_graph(random, trial % 10 == 0 ? 4 : 3);
    const int budget = everything(graph) - 1 - trial % 3;
    const ExactSchedule exact = recompute_exact(graph, budget);
    const GraphSchedule greedy = recompute_greedy(graph, budget);
    if (greedy.keep.empty()) {
      only_exact += exact.keep.empty() ? 0 : 1;
      continue;
    }
    ASSERT_FALSE(exact.keep.empty());
    check(graph, greedy);
    ASSERT_LE(greedy.peak, budget);
    ASSERT_GE(greedy.seconds, exact.seconds - 1e-9);
    if (greedy.seconds > exact.seconds + 1e-9) {  // the bound did not hide it
      std::int64_t steps = 0;
      ASSERT_DOUBLE_EQ(exact.seconds, every_kept_set(graph, budget, steps)) << trial;
      ++beaten;
    }
    sum += greedy.seconds / exact.seconds, worst = std::max(worst, greedy.seconds / exact.seconds);
    ++both;
  }
  std::printf("greedy over exact: mean %.4f, worst %.2f of %d graphs; exact alone finds %d\n", sum / both, worst, both,
              only_exact);
  EXPECT_GT(both, 300);
  EXPECT_GT(beaten, 1);
  EXPECT_LT(sum / both, 1.10);
  EXPECT_LT(only_exact, both / 10);
}

// 0 -> 1 -> {2, 3} -> 4 -> 5: the branches between 1 and 4 have no point of their own.
TEST(RecomputeGraph, ChainPointsAreWhereOneValuePasses) {
  const std::vector<RecomputeNode> graph = {{1, 1, {}}, {1, 1, {0}}, {1, 1, {1}}, {1, 1, {1}}, {1, 1, {2, 3}}, {1, 1, {4}}};
  EXPECT_EQ(chain_points(graph), (std::vector<int>{1, 4}));
}

}  // namespace foreshard::recompute_graph_test
