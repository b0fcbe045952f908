// Where the network is slow a search finds that fewer nodes are faster.
#include "strategy/search/search_nodes.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "core/cluster_file/cluster_file.h"
#include "tests/strategy/support_search.h"

namespace foreshard::search_nodes_test {

namespace {

SearchResult found(const Model& model, const Cluster& cluster, const SearchOptions& options) {
  auto answer = search(model, cluster, options);
  EXPECT_TRUE(std::holds_alternative<SearchResult>(answer)) << std::get<Infeasible>(answer).reason;
  return std::get<SearchResult>(std::move(answer));
}

SearchOptions short_sequences(std::int64_t batch) {
  SearchOptions all = options(batch, 512);
  all.refine = 8, all.stages = false;
  all.fixed = {"overlap", "zero_group", "sequence_parallel", "placement"};
  return all;
}

}  // namespace

// 16 GPUs in two nodes behind 25 Gb/s: the answer is that of one node, whose GPUs never wait for the network.
TEST(SearchNodes, OneNodeWinsWhereTheNetworkIsSlow) {
  const Model model = layers("gpt2-355m", 8);
  const SearchOptions small = short_sequences(32);
  const SearchResult two = found(model, load_cluster("eth25-a100-x2"), small),
                     one = found(model, load_cluster("eth25-a100"), small);
  EXPECT_EQ(two.ranked.front().gpus(), 8);
  EXPECT_EQ(two.ranked.front().score, one.ranked.front().score);
  EXPECT_EQ(two.ranked.front().strategy, one.ranked.front().strategy);
  EXPECT_GT(two.enumerated, one.enumerated);
  EXPECT_TRUE(std::ranges::any_of(two.ranked, [](const Candidate& each) { return each.gpus() == 16; }));
}

// All nodes win where half of them would need longer to compute alone: nothing is added to the search.
TEST(SearchNodes, AllNodesWinWhereComputingDecides) {
  const Model model = layers("gpt2-355m", 8);
  const SearchResult result = found(model, load_cluster("dgx-a100-x2"), short_sequences(512));
  for (const Candidate& each : result.ranked) EXPECT_EQ(each.gpus(), 16);
}

// With dp fixed the degrees say how many GPUs are used; an objective other than time does not ask which nodes are fastest.
TEST(SearchNodes, NothingIsAddedToWhatIsAsked) {
  const Model model = layers("gpt2-355m", 8);
  const Cluster cluster = load_cluster("eth25-a100-x2");
  int searches = 0;
  const auto count = [&](const Cluster&, const SearchOptions&) -> std::variant<SearchResult, Infeasible> {
    return ++searches, Infeasible{};
  };
  const auto searched = [&](SearchOptions asked) {
    SearchResult result;
    result.ranked = {Candidate{.score = 1e9}};
    searches = 0;
    search_fewer_nodes({model, cluster, asked, count}, result);
    return searches;
  };
  SearchOptions asked = short_sequences(32);
  EXPECT_EQ(searched(asked), 1);
  asked.objective = Objective::Memory;
  EXPECT_EQ(searched(asked), 0);
  asked.objective = Objective::Time, asked.fixed.push_back("dp"), asked.base.dp = 16;
  EXPECT_EQ(searched(asked), 0);
}

// What no strategy goes below is that of all spaces that were searched.
TEST(SearchNodes, TheLowerBoundIsThatOfAllSpaces) {
  const Model model = layers("gpt2-355m", 8);
  const Cluster cluster = load_cluster("eth25-a100-x2");
  const SearchOptions small = short_sequences(32);
  Candidate slow{.score = 1e9};
  SearchResult result{.ranked = {slow}, .bound = 5};
  search_fewer_nodes(
      {model, cluster, small, [&](const Cluster&, const SearchOptions&) { return SearchResult{.ranked = {slow}, .bound = 3}; }},
      result);
  EXPECT_EQ(result.bound, 3);
}

}  // namespace foreshard::search_nodes_test
