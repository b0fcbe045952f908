// A model as a chain with data and tensor parallelism per stage.
#include "strategy/tune/hybrid_model.h"

#include <gtest/gtest.h>

#include "core/check/check_plan.h"
#include "core/cluster_file/cluster_file.h"
#include "strategy/tune/hybrid_stages.h"
#include "strategy/tune/tune.h"
#include "tests/how_many.h"

namespace foreshard::hybrid_model_test {

namespace {

Strategy with_batch(std::int64_t batch) {
  Strategy s;
  s.batch.global = batch, s.batch.micro = 1, s.batch.seq = 1024;
  return s;
}

double step(const Model& model, const Cluster& cluster, Strategy s, const HybridStage& each, int stages) {
  s.tp = each.tensor, s.dp = each.replicas, s.pp = stages;
  const auto answer = tuned_plan(model, cluster, s, {.ignore_memory = true});
  return refine(std::get<Lowered>(answer), cluster).time.value;
}

}  // namespace

// What a further micro-batch costs by the whole plan's recurrence (32 more, d at a time) is what the slowest stage says, sums of
// gradients aside, which come once per step. Transfers on NVLink add a little between the stages.
TEST(HybridModel, SteadyStateIsThatOfThePlan) {
  const Model model = load_model("gpt2-355m");
  const Cluster cluster = load_cluster("dgx-a100");
  HybridJob job = hybrid_job(model, cluster, with_batch(32), 0);
  job.microbatches = 1e12;
  for (const auto& [tensor, replicas, stages] : {std::tuple{1, 8, 1}, {1, 4, 2}, {2, 2, 2}, {4, 1, 2}, {2, 1, 4}, {1, 1, 8}}) {
    double slowest = 0;
    for (int i = 0; i < stages; ++i)
      slowest = std::max(slowest, hybrid_cost(job, {i * 24 / stages, (i + 1) * 24 / stages, replicas, tensor}));
    const HybridStage each{.replicas = replicas, .tensor = tensor};
    const double more = step(model, cluster, with_batch(64), each, stages) - step(model, cluster, with_batch(32), each, stages);
    EXPECT_NEAR(more / 32, slowest, 0.03 * slowest) << tensor << " " << replicas << " " << stages;
  }
}

// What is found can be lowered and fits, says what the partition says, and is no better than the exact partition.
TEST(HybridModel, StagedPlansAreThePartitionsTheySay) {
  for (const std::string& name : some_of<std::string>({"vgg-16", "gpt2-355m", "llama-2-7b"}, 2)) {
    const Model model = load_model(name);
    const Cluster cluster = load_cluster(name == "llama-2-7b" ? "dgx-a100" : "eth25-a100-x8");
    Strategy strategy = with_batch(48);
    if (name == "vgg-16") strategy.batch.seq = 0;
    const HybridJob job = hybrid_job(model, cluster, strategy, 0);
    const double bound = partition_hybrid(job).cost;
    const StagedPlans found = staged_plans(model, cluster, strategy, job, {.most = 20});
    ASSERT_FALSE(found.plans.empty()) << name;
    EXPECT_FALSE(found.why_none);
    double guess = 0;
    for (const StagedPlan& plan : found.plans) {
      const std::vector<StageDegrees>& stages = plan.lowered.strategy.stages;
      ASSERT_EQ(stages.size(), plan.partition.stages.size());
      int ranks = 0;
      for (std::size_t s = 0; s < stages.size(); ++s) {
        const HybridStage& of = plan.partition.stages[s];
        EXPECT_EQ(stages[s], (StageDegrees{of.last - of.first, of.replicas, of.tensor}));
        EXPECT_EQ(48 % of.replicas, 0);
        ranks += of.devices();
      }
      EXPECT_LE(ranks, job.devices);
      if (name == "gpt2-355m") {
        EXPECT_EQ(stages.front().tp, stages.back().tp) << "tied";
      }
      EXPECT_GE(plan.partition.cost, bound * (1 - 1e-12));
      EXPECT_GE(plan.guess, guess) << "best first";
      guess = plan.guess;
      EXPECT_TRUE(check_plan(plan.lowered.plan).empty());
      EXPECT_FALSE(does_not_fit(plan.lowered.plan, cluster));
    }
  }
}

// 7 billion parameters of 16 bytes are 100 GiB, more than one A100 has: every plan has several stages or tensor ranks. Clipping is
// something that no such plan has, and that is told.
TEST(HybridModel, StagedPlansSayWhyThereIsNone) {
  const Model model = load_model("llama-2-7b");
  const Cluster cluster = load_cluster("dgx-a100");
  Strategy strategy = with_batch(16);
  const HybridJob job = hybrid_job(model, cluster, strategy, 0);
  for (const StagedPlan& plan : staged_plans(model, cluster, strategy, job, {.most = 20}).plans)
    EXPECT_GT(plan.partition.stages.size() * static_cast<std::size_t>(plan.partition.stages.front().tensor), 1u);
  strategy.optimizer.clip_norm = 1;
  const StagedPlans none = staged_plans(model, cluster, strategy, job, {.most = 20});
  EXPECT_TRUE(none.plans.empty());
  ASSERT_TRUE(none.why_none);
  EXPECT_EQ(none.why_none->reason, "stages that are said one by one cannot have clipping by the global norm");
}

// The plan fits, its degrees fill the cluster, and it is never better than the exact partition of the same costs.
TEST(HybridModel, TheBestEqualPlanIsNoBetterThanThePartition) {
  for (const char* name : {"gpt2-1.5b", "vgg-16"}) {
    const Model model = load_model(name);
    const Cluster cluster = load_cluster("eth25-a100-x8");
    Strategy strategy = with_batch(64);
    if (std::string(name) == "vgg-16") strategy.batch.seq = 0;
    const HybridJob job = hybrid_job(model, cluster, strategy, 0);
    const HybridPartition partition = partition_hybrid(job);
    const auto plan = best_uniform_plan(model, cluster, strategy, job);
    ASSERT_TRUE(plan);
    EXPECT_GE(plan->partition.cost, partition.cost * (1 - 1e-12)) << name;
    EXPECT_GE(plan->estimate.time.value, job.microbatches * partition.cost) << name;
    EXPECT_EQ(plan->strategy.tp * plan->strategy.pp * plan->strategy.dp, gpu_count(cluster));
    EXPECT_TRUE(std::holds_alternative<Lowered>(tuned_plan(model, cluster, plan->strategy)));
  }
}

TEST(HybridModel, RefusesNodesThatDiffer) {
  Cluster cluster = load_cluster("dgx-a100-x2");
  cluster.nodes.push_back(load_cluster("dgx-h100").nodes.front());
  EXPECT_THROW(hybrid_job(load_model("gpt2-124m"), cluster, with_batch(32), 0), Error);
}

}  // namespace foreshard::hybrid_model_test
