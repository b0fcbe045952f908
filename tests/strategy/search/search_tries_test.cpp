// Options that a search varies only if asked.
#include "strategy/search/search_tries.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "core/cluster_file/cluster_file.h"
#include "core/model/model_files.h"
#include "core/strategy/strategy_options.h"
#include "tests/strategy/support_lower.h"

namespace foreshard::search_tries_test {
namespace {

SearchOptions eight_in_one_group() {
  SearchOptions options{.base = {.tp = 8, .batch = {.micro = 8, .global = 8, .seq = 1024}}};
  options.fixed = {"tp", "pp", "dp", "micro_batch"}, options.threads = 1;
  return options;
}

TEST(SearchTries, AllCombinationsOfWhatIsAskedForAndNothingElse) {
  SearchOptions options = eight_in_one_group();
  EXPECT_TRUE(tried_variants(options, options.base).empty());
  std::size_t all = 1;
  for (const TriedOption& option : tried_options()) {
    options.tries = {option.path};
    EXPECT_EQ(tried_variants(options, options.base).size(), option.values.size());
    all *= option.values.size() + 1;
  }
  options.tries.clear();
  for (const TriedOption& option : tried_options()) options.tries.push_back(option.path);
  const auto variants = tried_variants(options, options.base);
  EXPECT_EQ(variants.size(), all - 1);
  EXPECT_LE(variants.size(), static_cast<std::size_t>(kMostTried));
  for (const Strategy& strategy : variants) EXPECT_EQ(std::ranges::count(variants, strategy), 1);
}

// Where sums wait for PCIe, the winner sends fewer bytes, but only if compression is asked for.
TEST(SearchTries, ACodecIsChosenWhereItIsFaster) {
  const Model model = load_model("gpt2-355m");
  const Cluster cluster = load_cluster("pcie-a100-8");
  SearchOptions options = eight_in_one_group();
  const auto best = [&] {
    auto answer = search(model, cluster, options);
    return std::get<SearchResult>(answer).ranked.front();
  };
  const Candidate plain = best();
  EXPECT_FALSE(plain.strategy.communication.activations.any());
  options.tries = {"compress_activations"};
  const Candidate coded = best();
  EXPECT_TRUE(coded.strategy.communication.activations.any());
  EXPECT_LT(coded.score, 0.95 * plain.score);
  // It is the fastest of those that were tried.
  for (const std::string& value : tried_options()[1].values) {
    SearchOptions one = eight_in_one_group();
    set_option(one.base, "compress_activations", value, "this test");
    auto answer = search(model, cluster, one);
    EXPECT_GE(std::get<SearchResult>(answer).ranked.front().score, 0.999 * coded.score) << value;
  }
}

// Sums over two nodes cost too much as they are: with codes, and without ZeRO, both nodes are used.
TEST(SearchTries, CodesOfGradientsMakeASecondNodeWorthwhile) {
  const Model model = load_model("gpt2-355m");
  const Cluster cluster = load_cluster("eth25-a100-x2");
  SearchOptions options{.base = {.tp = 1, .batch = {.micro = 8, .global = 128}}};
  options.fixed = {"tp", "pp", "micro_batch"}, options.threads = 1;
  auto plain = search(model, cluster, options);
  EXPECT_EQ(std::get<SearchResult>(plain).ranked.front().strategy.dp, 8);
  options.tries = {"compress_gradients"};
  auto coded = search(model, cluster, options);
  const Candidate& best = std::get<SearchResult>(coded).ranked.front();
  EXPECT_EQ(best.strategy.dp, 16);
  EXPECT_EQ(best.strategy.communication.compress_group, 8);
  EXPECT_EQ(best.point.zero, best.strategy.zero.stage);
  EXPECT_LT(best.score, 0.8 * std::get<SearchResult>(plain).ranked.front().score);
}

}  // namespace
}  // namespace foreshard::search_tries_test
