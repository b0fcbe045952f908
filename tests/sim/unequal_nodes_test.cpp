// Nodes of different GPUs: every stage stands on one kind, is as long as its GPUs are fast, and is simulated with their costs.
#include <gtest/gtest.h>

#include "core/cluster_file/cluster_file.h"
#include "sim/simulate.h"
#include "strategy/estimate/estimate.h"
#include "strategy/search/search.h"
#include "strategy/tune/tune.h"

namespace foreshard::unequal_nodes_test {

namespace {

Cluster old_and_new() {
  return parse_cluster(R"({"name": "old-and-new", "source": "test", "nodes": [{"shape": "dgx-a100"}, {"shape": "dgx-h100"}]})",
                       "test");
}

Strategy two_stages(const char* split) {
  Strategy s;
  s.tp = 8, s.pp = 2, s.dp = 1, s.batch.micro = 1, s.batch.global = 32, s.batch.seq = 2048;
  s.pipeline.layer_split = split;
  return s;
}

double simulated(const Strategy& s) {
  const Cluster cluster = old_and_new();
  const auto answer = tuned_plan(load_model("llama-2-7b"), cluster, s);
  if (const auto* refused = std::get_if<Infeasible>(&answer)) {
    ADD_FAILURE() << refused->reason;
    return 0;
  }
  const Lowered& lowered = std::get<Lowered>(answer);
  EXPECT_NE(lowered.plan.roles[0].device_kind, lowered.plan.roles[1].device_kind);
  const double seconds = simulate(lowered.plan, cluster, {}).makespan_s;
  EXPECT_NEAR(refine(lowered, cluster).time.value / seconds, 1, 0.02);
  return seconds;
}

}  // namespace

// 32 layers: the H100s take more than half of them, which is faster than halves and than the other way round.
TEST(UnequalNodes, StagesAreAsLongAsTheirGpusAreFast) {
  const auto answer = tuned_plan(load_model("llama-2-7b"), old_and_new(), two_stages("auto"));
  ASSERT_TRUE(std::holds_alternative<Lowered>(answer)) << std::get<Infeasible>(answer).reason;
  const std::string split = std::get<Lowered>(answer).strategy.pipeline.layer_split;
  const std::vector<int> layers = parse_layer_split(split, "test");
  ASSERT_EQ(layers.size(), 2u);
  EXPECT_LT(layers[0], layers[1]);
  const double best = simulated(two_stages("auto"));
  EXPECT_LT(best, simulated(two_stages("16x2")));
  EXPECT_LT(best, simulated(two_stages((std::to_string(layers[1]) + "," + std::to_string(layers[0])).c_str())));
}

TEST(UnequalNodes, AStageOnTwoKindsIsRefused) {
  Strategy s = two_stages("");
  s.pp = 1, s.dp = 2;
  const auto answer = tuned_plan(load_model("llama-2-7b"), old_and_new(), s);
  ASSERT_TRUE(std::holds_alternative<Infeasible>(answer));
  EXPECT_NE(std::get<Infeasible>(answer).reason.find("pipeline stage 0 would stand on"), std::string::npos)
      << std::get<Infeasible>(answer).reason;
}

TEST(UnequalNodes, SearchKeepsStagesOnOneKind) {
  SearchOptions options;
  options.base.batch.global = 32, options.base.batch.seq = 2048, options.base.tp = 8, options.fixed = {"tp"};
  options.refine = 8;
  const auto answer = search(load_model("llama-2-7b"), old_and_new(), options);
  ASSERT_TRUE(std::holds_alternative<SearchResult>(answer)) << std::get<Infeasible>(answer).reason;
  EXPECT_EQ(std::get<SearchResult>(answer).ranked.front().point.pp, 2);
}

}  // namespace foreshard::unequal_nodes_test
