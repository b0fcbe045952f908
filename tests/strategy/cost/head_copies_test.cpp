// Copies around rotary embeddings in Megatron core: which plans have them, and their bytes.
#include "strategy/cost/head_copies.h"

#include <gtest/gtest.h>

#include "core/cluster_file/cluster_file.h"
#include "strategy/cost/plan_costs.h"
#include "strategy/kernels/op_cost.h"
#include "tests/strategy/support_lower.h"

namespace foreshard::head_copies_test {
namespace {

Compute rotation(std::int64_t heads, std::int64_t kv_heads, Phase phase) {
  return {.op = ops::Rope{.heads = heads, .kv_heads = kv_heads, .dim = 128},
          .phase = phase,
          .shapes = {{.dims = {2, 1024, (heads + 2 * kv_heads) * 128}, .dtype = DType::BF16}}};
}

// 4 bytes for each element: queries in the forward, queries and keys in the backward, whose values the operator copies already. Neither
// kernel loads vectors; newer ones that concatenate do.
TEST(HeadCopies, Bytes) {
  const Gpu gpu = load_gpu("h100-80");
  const FrameworkPreset &megatron = framework_preset("megatron"), &bridge = framework_preset("megatron-bridge");
  const auto heads = [&](const FrameworkPreset& preset, const Compute& what, double joins = 1) {
    const double head = streamed_time(gpu, {4 * 2 * 1024 * 128}).value * unvectorized_slowdown(gpu, 4 * joins);
    return copied_heads(gpu, preset, what).value / head;
  };
  EXPECT_NEAR(heads(megatron, rotation(32, 8, Phase::Forward)), 32, 1e-6);
  EXPECT_NEAR(heads(megatron, rotation(32, 8, Phase::Recompute)), 32, 1e-6);
  EXPECT_NEAR(heads(megatron, rotation(32, 8, Phase::InputGrad)), 40, 1e-6);
  EXPECT_NEAR(heads(bridge, rotation(32, 8, Phase::Forward)), 32, 1e-6);
  EXPECT_NEAR(heads(bridge, rotation(32, 8, Phase::InputGrad), 1.66), 40, 1e-6);
  // A query for each key, or one group alone: queries lie side by side.
  EXPECT_EQ(heads(megatron, rotation(32, 32, Phase::Forward)), 0);
  EXPECT_EQ(heads(megatron, rotation(4, 1, Phase::Forward)), 0);
  EXPECT_NEAR(heads(megatron, rotation(32, 32, Phase::InputGrad)), 64, 1e-6);
  // Latent attention rotates queries and keys apart.
  EXPECT_EQ(heads(megatron, rotation(32, 0, Phase::InputGrad)), 0);
  EXPECT_EQ(heads({}, rotation(32, 8, Phase::Forward)), 0);
  EXPECT_EQ(heads(megatron, {.op = ops::Norm{}, .phase = Phase::Forward, .shapes = {{.dims = {8, 8}}}}), 0);
}

// Two samples of 1024 tokens and 16 heads of 128: one copy in the forward, two in the backward.
TEST(HeadCopies, OfSeveralSamplesBehindAttention) {
  const Gpu gpu = load_gpu("h100-80");
  const auto copies = [&](const char* name, std::int64_t samples, Phase phase) {
    const Compute what = {
        .op = ops::Attention{}, .phase = phase, .shapes = {{.dims = {samples, 1024, 16, 128}, .dtype = DType::BF16}}};
    const double copy = streamed_time(gpu, {4 * 2 * 1024 * 2048}).value * unvectorized_slowdown(gpu, 4);
    return copied_samples(gpu, framework_preset(name), what).value / copy;
  };
  EXPECT_NEAR(copies("nanotron", 2, Phase::Forward), 1, 1e-6);
  EXPECT_NEAR(copies("nanotron", 2, Phase::Recompute), 1, 1e-6);
  EXPECT_NEAR(copies("nanotron", 2, Phase::InputGrad), 2, 1e-6);
  EXPECT_EQ(copies("nanotron", 1, Phase::Forward), 0);
  EXPECT_EQ(copies("megatron", 2, Phase::Forward), 0);
}

TEST(HeadCopies, TakeTheirTimeInPlans) {
  Model model = load_model("llama-3-8b");
  std::get<Transformer>(model.shape).layers = 1;
  const Cluster cluster = load_cluster("dgx-h100");
  Plan plan = lowered(model, cluster, {.dp = 8, .batch = {.micro = 1, .global = 8, .seq = 1024}}).plan;
  const auto seconds = [&](bool copies) {
    FrameworkPreset preset;
    preset.styles.copies_heads = copies;
    cost_plan(plan, cluster, preset);
    double sum = 0;
    for (std::size_t s = 0; s < plan.segments.size(); ++s)
      for (std::size_t i = 0; i < plan.segments[s].instructions.size(); ++i)
        if (plan.segments[s].name.starts_with("forward") && plan.segments[s].instructions[i].name == "rope")
          sum += to_seconds(plan.costs.front().by_segment[s][i].busy).value;
    return sum;
  };
  const Gpu& gpu = gpu_of(cluster, "h100-80");
  EXPECT_NEAR(seconds(true) - seconds(false), streamed_time(gpu, {4 * 1024 * 4096}).value * unvectorized_slowdown(gpu, 4),
              2e-9);
}

TEST(HeadCopies, FrameworksOnMegatronCore) {
  for (const char* name : {"megatron", "nemo", "nemo-lora", "megatron-bridge", "megatron-bridge-graphs"})
    EXPECT_TRUE(framework_preset(name).styles.copies_heads) << name;
  for (const char* name : {"nanotron", "torchtitan", "foreshard", "llmq", "megatron-deepspeed"})
    EXPECT_FALSE(framework_preset(name).styles.copies_heads) << name;
}

}  // namespace
}  // namespace foreshard::head_copies_test
