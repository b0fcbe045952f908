// The workspace of the attention in the plan's memory: of our executor on GPUs that need one, and of nobody else's.
#include <gtest/gtest.h>

#include "core/cluster/cluster.h"
#include "core/model/model.h"
#include "core/plan/attention_memory.h"
#include "strategy/cost/framework_memory.h"
#include "strategy/lower/lower.h"
#include "strategy/resolve/resolve.h"
#include "strategy/tune/tune.h"

namespace foreshard::attention_workspace_test {
namespace {

constexpr std::int64_t kMiB = 1 << 20, kGiB = std::int64_t{1} << 30;

Model llama(std::int64_t positions) {
  Model model = load_model("llama-3-8b");
  std::get<Transformer>(model.shape).max_positions = positions;
  return model;
}

// 16 bits, one sample at a time, on the eight GPUs of a node.
Strategy strategy(std::int64_t positions, int tp, int cp = 1) {
  Strategy s{.tp = tp, .batch = {.micro = 1, .global = 8 / (tp * cp), .seq = positions}, .attention = AttentionKernel::Flash};
  s.precision = DType::BF16, s.cp = cp, s.sequence_parallel = tp > 1;
  return s;
}

Lowered lowered(const Model& model, const std::string& cluster, const Strategy& s) {
  auto answer = tuned_plan(model, load_cluster(cluster), s, {.ignore_memory = true});
  if (const auto* refused = std::get_if<Infeasible>(&answer)) {
    ADD_FAILURE() << refused->reason;
    return {};
  }
  return std::get<Lowered>(std::move(answer));
}
Bytes beside_the_rest(const Model& model, const std::string& cluster, const Strategy& s) {
  const Lowered made = lowered(model, cluster, s);
  return made.plan.framework - framework_memory(made.strategy);
}

}  // namespace

// 32 heads, 8192 positions: 2 x 32 x 8192^2 bytes are 4 GiB, the row sums 1 MiB, gradients of 32 for 8 heads 128 MiB, and 1 MiB.
TEST(AttentionWorkspace, IsThatOfTheClustersGpus) {
  const Model model = llama(8192);
  const Strategy s = strategy(8192, 1);
  for (const char* cluster : {"dgx-a100", "dgx-h100", "hgx-h200", "dgx-b200"})
    EXPECT_EQ(beside_the_rest(model, cluster, s).value, 4 * kGiB + 130 * kMiB) << cluster;
}

// Llama-3-8B over eight GPUs of 141 GB: the map of 131,072 positions has 128 GiB, more than a run uses (16 GiB), so a run has our kernels, or
// sums in any order: 8 x 4 x 131072 x 128 = 512 MiB, 256 MiB for the gradients of grouped heads, row sums 2 MiB, and 1 MiB.
TEST(AttentionWorkspace, WhatARunDoesWithoutIsNotPartOfIt) {
  EXPECT_EQ(beside_the_rest(llama(131'072), "hgx-h200", strategy(131'072, 8)).value, 771 * kMiB);
  // With 32,768 positions the map's 8 GiB are within the limit there, and not on a GPU of 80 GB.
  EXPECT_GT(beside_the_rest(llama(32'768), "hgx-h200", strategy(32'768, 8)).value, 8 * kGiB);
  EXPECT_LT(beside_the_rest(llama(32'768), "dgx-h100", strategy(32'768, 8)).value, kGiB);
}

// Predictions of frameworks have the memory of their presets.
TEST(AttentionWorkspace, IsOfOurExecutorOnly) {
  const Model model = llama(8192);
  for (const char* framework : {"megatron", "torchtitan", "deepspeed"}) {
    Strategy s = strategy(8192, 1);
    s.framework = framework;
    EXPECT_EQ(beside_the_rest(model, "dgx-h100", s).value, 0) << framework;
  }
  Strategy unfused = strategy(8192, 1);
  unfused.attention = AttentionKernel::Unfused;
  EXPECT_EQ(beside_the_rest(model, "dgx-h100", unfused).value, 0);
}

// `search`, `--layer-split auto` and the trials of `tune` ask a graph, or a plan of a layer or two.
TEST(AttentionWorkspace, GraphAndPlanAgree) {
  const Model model = llama(8192);
  const Cluster cluster = load_cluster("dgx-h100");
  for (const int tp : {1, 2, 8})
    for (const int cp : {1, 2}) {
      if (tp * cp > 8) continue;
      const Lowered made = lowered(model, "dgx-h100", strategy(8192, tp, cp));
      const auto graph = graph_of(model, made.strategy);
      ASSERT_TRUE(std::holds_alternative<OpGraph>(graph));
      EXPECT_EQ(attention_workspace(std::get<OpGraph>(graph), cluster, made.strategy),
                made.plan.framework - framework_memory(made.strategy))
          << tp << " " << cp;
    }
}

}  // namespace foreshard::attention_workspace_test
