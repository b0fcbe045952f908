// search turns the overlap of micro-batches on by itself where that is faster in the simulation.
#include <gtest/gtest.h>

#include "sim/simulate.h"
#include "strategy/schedule/schedule.h"
#include "strategy/search/search.h"
#include "strategy/tune/tune.h"
#include "tests/strategy/support_search.h"

namespace foreshard::search_cells_test {
namespace {

double simulated(const Model& model, const Cluster& cluster, const Strategy& strategy) {
  const auto answer = tuned_plan(model, cluster, strategy);
  return simulate(std::get<Lowered>(answer).plan, cluster, {.granularity = Granularity::Stage}).makespan_s;
}

// Four layers of Qwen3-30B (128 experts) on two nodes: all-to-alls cross the network.
TEST(SearchCells, OverlapsMicroBatchesWhereThatIsFaster) {
  const Model model = layers("qwen3-30b-a3b", 4);
  const Cluster cluster = load_cluster("dgx-h100-x2");
  SearchOptions free = options(128, 4096);
  free.refine = 16, free.stages = free.best = false, free.base.experts.ep = 16;
  free.fixed = {"ep", "etp", "tp", "cp", "expert_dispatcher"};
  SearchOptions apart = free;
  apart.fixed.emplace_back("overlap");
  const auto found = std::get<SearchResult>(search(model, cluster, free));
  const Strategy& best = found.ranked.front().strategy;
  EXPECT_TRUE(schedule_entry(*best.pipeline.schedule).cells);
  EXPECT_TRUE(best.communication.overlap->tp);
  const Strategy without = std::get<SearchResult>(search(model, cluster, apart)).ranked.front().strategy;
  EXPECT_FALSE(schedule_entry(*without.pipeline.schedule).cells);
  const double fast = simulated(model, cluster, best), slow = simulated(model, cluster, without);
  RecordProperty("percent", static_cast<int>(100 * (slow / fast - 1)));
  EXPECT_LT(1.05 * fast, slow);
  EXPECT_LE(found.bound, fast * (1 + 1e-6));
}

}  // namespace
}  // namespace foreshard::search_cells_test
