// One verdict: by the arena without a framework, by the framework's predicted allocation and its error with one.
#include "strategy/verdict/verdict.h"

#include <gtest/gtest.h>

#include <cmath>

#include "core/base/error.h"
#include "core/cluster_file/cluster_file.h"
#include "core/result/verdict.h"
#include "strategy/search/search.h"
#include "strategy/tune/tune.h"
#include "strategy/verdict/spread.h"

namespace foreshard::verdict_test {

using enum Verdict::Kind;

// Measured / predicted between 0.9 and 1.2 in 90 of 100 cases: the logarithm's mean is ln(0.9 * 1.2) / 2, its deviation ln(1.2 / 0.9) / 3.29.
static const Spread kErrors{.low = 0.9, .high = 1.2};

TEST(Verdict, ProbabilityIsThatOfTheError) {
  const double middle = std::sqrt(0.9 * 1.2);
  EXPECT_NEAR(probability_of_fitting(1, middle, kErrors), 0.5, 1e-9);
  EXPECT_NEAR(probability_of_fitting(1, 1.2, kErrors), 0.95, 1e-4);
  EXPECT_NEAR(probability_of_fitting(1, 0.9, kErrors), 0.05, 1e-4);
  EXPECT_EQ(probability_of_fitting(2, 1, {}), 0);  // no error known: a prediction counts as it is
  EXPECT_EQ(probability_of_fitting(1, 2, {}), 1);
  for (const double probability : {0.1, 0.5, 0.9}) {
    const double margin = margin_of(probability, kErrors);
    EXPECT_NEAR(probability_of_fitting(1 / margin, 1, kErrors), probability, 1e-6);
  }
}

static Lowered lowered(const std::string& framework, int recompute_layers) {
  Strategy s{.tp = 2, .zero = {.stage = 1}};
  s.batch = {.micro = 2, .global = 16, .seq = 8192};
  s.framework = framework;
  if (recompute_layers > 0) s.recompute = {.kind = RecomputeKind::Full, .layers = recompute_layers};
  return std::get<Lowered>(tuned_plan(load_model("llama-3-8b"), load_cluster("dgx-h100"), s, {.ignore_memory = true}));
}

TEST(Verdict, WithoutAFrameworkTheArenaDecides) {
  const Model model = load_model("llama-3-8b");
  const Cluster cluster = load_cluster("dgx-h100");
  const Lowered large = lowered("foreshard", 0), small = lowered("foreshard", 32);
  const Verdict no = verdict(model, cluster, large), yes = verdict(model, cluster, small);
  EXPECT_EQ(no.kind, DoesNotFit);
  EXPECT_EQ(no.reason, does_not_fit(large.plan, cluster)->reason);
  EXPECT_EQ(yes.kind, Fits);
  EXPECT_EQ(yes.probability, 1);
  EXPECT_EQ(yes.holder + yes.reason + yes.beneath, "");
}

// What fits in the framework's allocator is said to fit, whatever our own arena takes; that stands beneath.
TEST(Verdict, WithAFrameworkItsAllocatorDecides) {
  const Model model = load_model("llama-3-8b");
  const Cluster cluster = load_cluster("dgx-h100");
  const Lowered made = lowered("megatron", 0);
  const Spread errors = memory_spread(shipped_comparisons(), "megatron", false);
  const auto filled = [&](double share) {
    FrameworkAllocation allocation{.ranks = {{}}};
    allocation.ranks[0].peak = allocation.ranks[0].reserved =
        share * static_cast<double>(gpu_of(cluster, "h100-80").memory.value);
    return verdict(made.plan, cluster, made.strategy, allocation);
  };
  const double edge = 1 / margin_of(kFits, errors);
  EXPECT_EQ(filled(edge * 0.999).kind, Fits);
  EXPECT_EQ(filled(edge * 1.001).kind, MayFit);
  EXPECT_EQ(filled(1 / margin_of(kMayFit, errors) * 1.001).kind, DoesNotFit);
  EXPECT_EQ(filled(0.5).holder, "megatron");
  EXPECT_EQ(filled(0.5).reason, "");
  EXPECT_NE(filled(0.5).beneath.find("own executor"), std::string::npos);
  EXPECT_NE(filled(2).reason.find("too much"), std::string::npos);
  EXPECT_EQ(parse_verdict(to_json(filled(2)), "test"), filled(2));
  EXPECT_THROW(parse_verdict(R"({"verdict": "perhaps"})", "test"), Error);
}

// What a search ranks fits by the same verdict, and tuned_plan refuses what does not.
TEST(Verdict, SearchAndPlansObeyIt) {
  const Model model = load_model("llama-3-8b");
  const Cluster cluster = load_cluster("dgx-h100");
  SearchOptions options;
  options.base.framework = "megatron", options.base.batch = {.global = 64, .seq = 8192};
  options.fixed = {"micro_batch", "schedule", "placement", "virtual_stages", "recompute"}, options.base.batch.micro = 1,
  options.threads = 1;
  const auto answer = search(model, cluster, options);
  ASSERT_TRUE(std::holds_alternative<SearchResult>(answer));
  for (const Candidate& candidate : std::get<SearchResult>(answer).ranked) {
    const auto again = tuned_plan(model, cluster, candidate.strategy, {.check = false});
    ASSERT_TRUE(std::holds_alternative<Lowered>(again)) << std::get<Infeasible>(again).reason;
    const Verdict judged = verdict(model, cluster, std::get<Lowered>(again));
    EXPECT_EQ(judged.kind, Fits) << to_json(candidate.strategy);
    EXPECT_EQ(judged, candidate.verdict);
  }
}

}  // namespace foreshard::verdict_test
