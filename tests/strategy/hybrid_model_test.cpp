// A model as a chain with data and tensor parallelism per stage.
#include "strategy/hybrid_model.h"

#include <gtest/gtest.h>

#include "strategy/lower.h"

namespace foreshard {

namespace {

Strategy with_batch(std::int64_t batch) {
  Strategy s;
  s.global_batch = batch, s.micro_batch = 1, s.seq = 1024;
  return s;
}

double step(const Model& model, const Cluster& cluster, Strategy s, const HybridStage& each, int stages) {
  s.tp = each.tensor, s.dp = each.replicas, s.pp = stages;
  const auto answer = lower(model, cluster, s, {.ignore_memory = true});
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

// 3 x 124 million parameters of 16 bytes are 6 GB: on GPUs with memory for a part of the states there are several stages, and what
// they keep was counted with as many micro-batches as they hold.
TEST(HybridModel, MemoryMakesStages) {
  const Model model = load_model("gpt2-355m");
  const Cluster cluster = load_cluster("dgx-a100");
  HybridJob job = hybrid_job(model, cluster, with_batch(64), 0);
  const HybridPartition roomy = partition_with_memory(job);
  ASSERT_FALSE(roomy.stages.empty());
  job.capacity = 2.5e9;
  const HybridPartition tight = partition_with_memory(job);
  ASSERT_GE(tight.stages.size(), 2u);
  EXPECT_GE(tight.cost, roomy.cost);
  for (std::size_t r = 0; r < tight.stages.size(); ++r) {
    const HybridStage& stage = tight.stages[r];
    const int held = static_cast<int>(tight.stages.size() - r);
    EXPECT_LE((held + stage.replicas - 1) / stage.replicas, job.in_flight);
    double bytes = 0;
    for (const TensorDegree& degree : job.degrees)
      for (int i = stage.first; degree.degree == stage.tensor && i < stage.last; ++i)
        bytes +=
            degree.layers[static_cast<std::size_t>(i)].states + job.in_flight * degree.layers[static_cast<std::size_t>(i)].kept;
    EXPECT_LE(bytes, job.capacity);
  }
  job.capacity = 1e6;
  EXPECT_TRUE(partition_with_memory(job).stages.empty());
}

// The plan fits, its degrees fill the cluster, and it is never better than the exact partition of the same costs.
TEST(HybridModel, TheBestEqualPlanIsNoBetterThanThePartition) {
  for (const char* name : {"gpt2-1.5b", "vgg-16"}) {
    const Model model = load_model(name);
    const Cluster cluster = load_cluster("eth25-a100-x8");
    Strategy strategy = with_batch(64);
    if (std::string(name) == "vgg-16") strategy.seq = 0;
    HybridJob job = hybrid_job(model, cluster, strategy, 0);
    const HybridPartition partition = partition_with_memory(job);
    const auto plan = best_uniform_plan(model, cluster, strategy, job);
    ASSERT_TRUE(plan);
    EXPECT_GE(plan->partition.cost, partition.cost * (1 - 1e-12)) << name;
    EXPECT_GE(plan->estimate.time.value, job.microbatches * partition.cost) << name;
    EXPECT_EQ(plan->strategy.tp * plan->strategy.pp * plan->strategy.dp, gpu_count(cluster));
    EXPECT_TRUE(std::holds_alternative<Lowered>(lower(model, cluster, plan->strategy)));
  }
}

TEST(HybridModel, RefusesNodesThatDiffer) {
  Cluster cluster = load_cluster("dgx-a100-x2");
  cluster.nodes.push_back(load_cluster("dgx-h100").nodes.front());
  EXPECT_THROW(hybrid_job(load_model("gpt2-124m"), cluster, with_batch(32), 0), Error);
}

}  // namespace foreshard
