// With a framework a search judges strategies by the memory that this framework allocates.
#include <gtest/gtest.h>

#include "core/base/divisors.h"
#include "strategy/cost/framework_preset.h"
#include "strategy/frameworks/framework_allocation.h"
#include "strategy/search/search.h"
#include "strategy/search/search_framework.h"
#include "strategy/tune/tune.h"
#include "strategy/verdict/verdict.h"
#include "tests/strategy/support_search.h"

namespace foreshard::search_framework_memory_test {
namespace {

constexpr std::int64_t kBatch = 32;

SearchOptions with_framework(const std::string& framework) {
  SearchOptions made = options(kBatch, 2048);
  made.base.framework = framework;
  made.offload = made.stages = false;
  return made;
}

double held(const Model& model, const Cluster& cluster, const Strategy& strategy) {
  const auto answer =
      framework_allocation(model, cluster, strategy, with_flags(framework_preset(strategy.framework).memory, ""));
  return std::get<FrameworkAllocation>(answer).largest();
}

TEST(SearchFrameworkMemory, WhatIsRankedFitsInTheFramework) {
  const Model model = layers("llama-2-7b", 8);
  const Cluster cluster = workstation(4);
  const double capacity = static_cast<double>(cluster.gpus.front().memory.value);
  for (const std::string framework : {"nanotron", "torchtitan", "megatron"}) {
    const auto answer = search(model, cluster, with_framework(framework));
    const SearchResult& result = std::get<SearchResult>(answer);
    ASSERT_FALSE(result.ranked.empty()) << framework;
    for (const Candidate& row : result.ranked) {
      const double bytes = held(model, cluster, row.strategy);
      EXPECT_LE(bytes * margin_of(kFits, memory_spread(shipped_comparisons(), framework, false)), capacity * (1 + 1e-6)) << framework;
      EXPECT_NEAR(static_cast<double>(row.estimate.peak.value), bytes, 1) << framework;
      EXPECT_NEAR(static_cast<double>(row.estimate.margin.value), capacity - bytes, 2) << framework;
    }
  }
}

// nanotron allocates up to 1.7 times what our plan takes (fp32 sums of gradients, copies of buckets): the fastest strategies of our plan
// run out of memory there.
TEST(SearchFrameworkMemory, TheWinnerIsTheFastestThatFitsInTheFramework) {
  const Model model = layers("llama-2-7b", 7);
  const Cluster cluster = workstation(4);
  const double capacity = static_cast<double>(cluster.gpus.front().memory.value);
  SearchOptions some = with_framework("nanotron");
  some.fixed = {"tp", "cp", "pp", "virtual_stages", "schedule", "sequence_parallel", "placement", "zero"};
  some.base.tp = 2;
  const auto answer = search(model, cluster, some);
  const Candidate& best = std::get<SearchResult>(answer).ranked.front();
  const Spread errors = memory_spread(shipped_comparisons(), "nanotron", false);
  double least = 1e300, by_arena = 1e300;
  for (const std::int64_t micro : divisors(kBatch / 2))
    for (int redone = -1; redone < 7; ++redone)  // -1: no layer; 0: all
      for (const bool gradients : {false, true}) {
        Strategy strategy = with_preset(model, some.base);
        strategy.dp = 2, strategy.batch.micro = micro;
        if (redone >= 0) strategy.recompute = {.kind = RecomputeKind::Full, .layers = redone};
        strategy.communication.overlap = Overlap{.gradients = gradients, .parameters = false, .p2p = false, .tp = true};
        if (!why_not_run_by(Runner::Nanotron, strategy).empty()) continue;
        const auto lowered = tuned_plan(model, cluster, strategy, {.ignore_memory = true, .check = false});
        const double time = refine(std::get<Lowered>(lowered), cluster).time.value;
        const double probability = probability_of_fitting(held(model, cluster, strategy), capacity, errors);
        if (probability >= kFits) least = std::min(least, time);
        if (!does_not_fit(std::get<Lowered>(lowered).plan, cluster)) by_arena = std::min(by_arena, time);
      }
  EXPECT_LT(by_arena, least);  // else this test shows nothing
  EXPECT_NEAR(best.estimate.time.value, least, 1e-6 * least);
}

}  // namespace
}  // namespace foreshard::search_framework_memory_test
