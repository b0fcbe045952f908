// Searches where the memory of the devices binds: what lies in host memory is a choice like others, and a row of the ranking.
#include <gtest/gtest.h>

#include "core/cluster/cluster_slice.h"
#include "core/cluster_file/cluster_file.h"
#include "strategy/search/search.h"
#include "strategy/tune/tune.h"
#include "tests/strategy/support_search.h"

namespace foreshard::search_offload_test {
namespace {

SearchOptions offloading(std::int64_t batch, std::int64_t seq) {
  SearchOptions made = options(batch, seq);
  made.offload = true, made.stages = false, made.best = false, made.schedules = false;
  return made;
}

// 1.6 billion parameters take 25 GB with their states, 3 GB of them parameters: four GPUs of 24 GB less three quarters have 24 GB.
TEST(SearchOffload, WhatDoesNotFitIsRankedWithItsStatesInHostMemory) {
  const Model model = load_model("gpt2-1.5b");
  const Cluster cluster = workstation(4);
  SearchOptions narrow = offloading(8, 512);
  narrow.base.device_memory.reserve = 0.75;
  const auto answer = search(model, cluster, narrow);
  ASSERT_TRUE(std::holds_alternative<SearchResult>(answer)) << std::get<Infeasible>(answer).reason;
  const SearchResult& result = std::get<SearchResult>(answer);
  EXPECT_FALSE(result.without_host_memory.empty());
  ASSERT_FALSE(result.ranked.empty());
  for (const Candidate& row : result.ranked) {
    EXPECT_EQ(row.strategy.offload.optimizer, Space::PinnedHost);
    EXPECT_GT(row.estimate.time.value, 0);
    EXPECT_TRUE(std::holds_alternative<Lowered>(tuned_plan(model, cluster, row.strategy, {})));  // with its memory
  }
  SearchOptions said = narrow;  // --offload-optimizer device
  said.fixed = {"offload_optimizer"};
  EXPECT_TRUE(std::holds_alternative<Infeasible>(search(model, cluster, said)));
  said = narrow, said.base.policy = "fsdp", said.fixed = {"policy"};
  EXPECT_TRUE(std::holds_alternative<Infeasible>(search(model, cluster, said)));
}

// Where all fits nothing else is looked at: the same answer, and as many plans.
TEST(SearchOffload, WhatFitsStaysWhereItIs) {
  SearchOptions with = offloading(8, 512), without = with;
  without.offload = false;
  const Model model = layers("gpt2-355m", 4);
  const auto a = std::get<SearchResult>(search(model, workstation(4), with)),
             b = std::get<SearchResult>(search(model, workstation(4), without));
  EXPECT_TRUE(a.without_host_memory.empty());
  EXPECT_EQ(a.refined, b.refined);
  ASSERT_EQ(a.ranked.size(), b.ranked.size());
  EXPECT_EQ(a.ranked.front().point, b.ranked.front().point);
  for (const Candidate& row : a.ranked) EXPECT_EQ(row.strategy.offload, OffloadChoice{});
}

// Something fits, but with its states in host memory a GPU takes larger micro-batches: both are ranked, by their time.
TEST(SearchOffload, RowsWithAndWithoutAreRankedTogether) {
  const Cluster one = with_first_gpus(load_cluster("dgx-a100-40gb"), 1);
  SearchOptions made = offloading(512, 1024), without = made;
  without.offload = false;
  const auto both = std::get<SearchResult>(search(load_model("gpt2-1.5b"), one, made)),
             here = std::get<SearchResult>(search(load_model("gpt2-1.5b"), one, without));
  EXPECT_TRUE(both.without_host_memory.empty());
  ASSERT_GT(both.ranked.size(), 1u);
  EXPECT_EQ(both.ranked[0].strategy.offload.optimizer, Space::PinnedHost);
  EXPECT_EQ(both.ranked[1].strategy.offload, OffloadChoice{});
  EXPECT_LT(both.ranked[0].score, both.ranked[1].score);
  EXPECT_EQ(both.ranked[1].score, here.ranked[0].score);
  EXPECT_GT(both.ranked[0].point.micro_batch, both.ranked[1].point.micro_batch);
  EXPECT_LE(both.refined, here.refined + 9);  // a few plans, not a search: 512 samples at once, 256, 128, ... 2
}

// A policy that keeps parameters until the backward is searched with one stage; its rows are its plans.
TEST(SearchOffload, PoliciesAreKnown) {
  for (const char* policy : {"fsdp", "deepspeed_z3", "gemini_static", "zero_offload"}) {
    SearchOptions with = offloading(8, 512);
    with.base.policy = policy, with.fixed = {"policy"};
    const auto answer = search(layers("gpt2-355m", 4), workstation(4), with);
    ASSERT_TRUE(std::holds_alternative<SearchResult>(answer)) << policy << ": " << std::get<Infeasible>(answer).reason;
    for (const Candidate& row : std::get<SearchResult>(answer).ranked) {
      EXPECT_EQ(row.strategy.policy, policy);
      const bool keeps = policy != std::string("fsdp") && policy != std::string("zero_offload");
      EXPECT_TRUE(!keeps || row.point.pp == 1) << policy;
      EXPECT_EQ(row.strategy.zero.stage, row.point.zero);
    }
  }
}

}  // namespace
}  // namespace foreshard::search_offload_test
