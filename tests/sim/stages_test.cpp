// Stages with degrees of their own on the simulator: where all are equal, the time of the ordinary plan; folding changes nothing; a
// slow stage with more replicas is no longer the slowest.
#include <gtest/gtest.h>

#include "core/cluster_file/cluster_file.h"
#include "sim/simulate.h"
#include "strategy/tune/hybrid_stages.h"
#include "strategy/tune/tune.h"

namespace foreshard::stages_test {
namespace {

Lowered lowered(const std::string& model, const Strategy& s, const std::string& cluster) {
  auto answer = tuned_plan(load_model(model), load_cluster(cluster), s, {.ignore_memory = true});
  if (const auto* refused = std::get_if<Infeasible>(&answer)) {
    ADD_FAILURE() << refused->reason;
    return {};
  }
  return std::get<Lowered>(std::move(answer));
}

double seconds(const std::string& model, const Strategy& s, const std::string& cluster, SimulateOptions options = {}) {
  return simulate(lowered(model, s, cluster).plan, load_cluster(cluster), options).makespan_s;
}

}  // namespace

// Llama does not tie its embeddings: nothing differs but who has which micro-batch.
TEST(Stages, EqualOnesTakeTheTimeOfTheOrdinaryPlan) {
  for (const Schedule schedule : {Schedule::OneFOneB, Schedule::GPipe})
    for (const auto& [tp, pp, dp] : {std::tuple{1, 4, 2}, std::tuple{2, 2, 2}, std::tuple{1, 1, 8}, std::tuple{4, 2, 1}}) {
      const Strategy one{
          .dp = dp, .tp = tp, .pp = pp, .pipeline = {.schedule = schedule}, .batch = {.micro = 1, .global = 16, .seq = 1024}};
      Strategy each{.pipeline = {.schedule = schedule}, .batch = {.micro = 1, .global = 16, .seq = 1024}};
      each.stages.assign(static_cast<std::size_t>(pp), {32 / pp, dp, tp});
      EXPECT_NEAR(seconds("llama-2-7b", each, "dgx-a100") / seconds("llama-2-7b", one, "dgx-a100"), 1, 1e-9)
          << "tp " << tp << " pp " << pp << " dp " << dp;
    }
}

TEST(Stages, FoldingChangesNothing) {
  Strategy s{.batch = {.micro = 1, .global = 8, .seq = 1024}};
  s.stages = {{6, 2, 1}, {12, 1, 4}, {14, 2, 2}};
  const SimulateOptions apart{.folding = Folding::None}, groups{.folding = Folding::Tp};
  const double folded = seconds("llama-2-7b", s, "dgx-a100-x2");
  EXPECT_NEAR(seconds("llama-2-7b", s, "dgx-a100-x2", apart) / folded, 1, 1e-9);
  EXPECT_NEAR(seconds("llama-2-7b", s, "dgx-a100-x2", groups) / folded, 1, 1e-9);
}

// 8 and 24 layers on four GPUs: one and three replicas make both stages as fast as each other, which two and two do not.
TEST(Stages, MoreReplicasWhereTheWorkIs) {
  Strategy s{.batch = {.micro = 1, .global = 48, .seq = 1024}};
  s.stages = {{8, 1, 1}, {24, 3, 1}};
  const double fitted = seconds("llama-2-7b", s, "dgx-a100");
  s.stages = {{8, 2, 1}, {24, 2, 1}};
  EXPECT_LT(fitted, 0.85 * seconds("llama-2-7b", s, "dgx-a100"));
}

// VGG-16 on 64 GPUs behind 25 Gb/s: the classifier's 124 million parameters are summed over a few GPUs instead of 64.
TEST(Stages, ThePartitionIsFasterThanEqualStages) {
  const Model model = load_model("vgg-16");
  const Cluster cluster = load_cluster("eth25-a100-x8");
  const Strategy strategy{.batch = {.micro = 8, .global = 512}};
  const HybridJob job = hybrid_job(model, cluster, strategy, 0);
  const auto equal = best_uniform_plan(model, cluster, strategy, job);
  ASSERT_TRUE(equal);
  const StagedPlans staged = staged_plans(model, cluster, strategy, job, {.most = 1});
  ASSERT_EQ(staged.plans.size(), 1u);
  const double fast = simulate(staged.plans[0].lowered.plan, cluster, {}).makespan_s;
  EXPECT_LT(fast, 0.5 * seconds("vgg-16", equal->strategy, "eth25-a100-x8"));
}

}  // namespace foreshard::stages_test
