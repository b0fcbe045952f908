// Kernels beside the products of adapters, and frozen weights in 8 bits: closed forms, and a plan that is costed with them.
#include "strategy/cost/adapter_cost.h"

#include <gtest/gtest.h>

#include "core/cluster_file/cluster_file.h"
#include "strategy/cost/plan_costs.h"
#include "tests/strategy/support_lower.h"

namespace foreshard::adapter_cost_test {
namespace {

constexpr std::int64_t kRank = 16, kTokens = 1024;

Compute product(std::int64_t n, std::int64_t k, Phase phase, DType type = DType::BF16) {
  return {.op = ops::MatMul{},
          .phase = phase,
          .shapes = {{.dims = {1, kTokens, n, k}, .dtype = type}},
          .flops = {1e9},
          .traffic = {1 << 20}};
}

Plan plan_of(int rank) {
  Strategy s = {.dp = 8, .batch = {.micro = 1, .seq = 512}};
  s.optimizer.lora.rank = rank;
  return lowered("llama-2-7b", "dgx-a100", s).plan;
}

TEST(AdapterCost, RankIsTheSmallerSideOfTrainedMatrices) {
  EXPECT_EQ(adapter_rank(plan_of(16)), 16);
  EXPECT_EQ(adapter_rank(plan_of(0)), 0);
}

// An input of 4096 numbers a token, a result of 5120: 5 bytes each in the forward and 9 in the backward of the one, 4 of the other.
TEST(AdapterCost, PassesOverInputAndResult) {
  const FrameworkPreset preset = {.styles = {.adapters = {.input = 5, .input_backward = 9, .result = 4, .result_backward = 3}}};
  EXPECT_EQ(adapter_bytes(preset, kRank, product(kRank, 4096, Phase::Forward)).value, 5 * kTokens * 4096);
  EXPECT_EQ(adapter_bytes(preset, kRank, product(kRank, 4096, Phase::Recompute)).value, 5 * kTokens * 4096);
  EXPECT_EQ(adapter_bytes(preset, kRank, product(kRank, 4096, Phase::InputGrad)).value, 9 * kTokens * 4096);
  EXPECT_EQ(adapter_bytes(preset, kRank, product(kRank, 4096, Phase::WeightGrad)).value, 0);
  EXPECT_EQ(adapter_bytes(preset, kRank, product(5120, kRank, Phase::Forward)).value, 4 * kTokens * 5120);
  EXPECT_EQ(adapter_bytes(preset, kRank, product(5120, kRank, Phase::InputGrad)).value, 3 * kTokens * 5120);
  EXPECT_EQ(adapter_bytes(preset, kRank, product(5120, 4096, Phase::Forward)).value, 0);
  EXPECT_EQ(adapter_bytes(preset, 0, product(kRank, 4096, Phase::Forward)).value, 0);
}

// The transposed copy of an input is written and read with 1 byte each; so are weights that are transposed in the backward.
TEST(AdapterCost, FrozenWeightsInEightBits) {
  const FrameworkPreset keeps, transposes = {.styles = {.adapters = {.transposes_weights = true}}};
  const Gpu hopper = {.architecture = "hopper"}, blackwell = {.architecture = "blackwell"};
  const Compute forward = product(5120, 4096, Phase::Forward, DType::F8),
                backward = product(5120, 4096, Phase::InputGrad, DType::F8);
  EXPECT_EQ(frozen_bytes(keeps, kRank, forward, hopper).value, -2 * kTokens * 4096);
  EXPECT_EQ(frozen_bytes(keeps, 0, forward, hopper).value, 0);
  EXPECT_EQ(frozen_bytes(keeps, kRank, backward, hopper).value, 0);
  EXPECT_EQ(frozen_bytes(transposes, kRank, backward, hopper).value, 2LL * 5120 * 4096);
  EXPECT_EQ(frozen_bytes(transposes, kRank, backward, blackwell).value, 0);
  EXPECT_EQ(frozen_bytes(transposes, kRank, product(5120, 4096, Phase::InputGrad), hopper).value, 0);
  EXPECT_EQ(frozen_bytes(keeps, kRank, product(kRank, 4096, Phase::Forward, DType::F8), hopper).value, 0);
}

double computes(const Plan& plan) {
  double sum = 0;
  for (const std::vector<Cost>& segment : plan.costs.at(0).by_segment)
    for (const Cost& cost : segment) sum += to_seconds(cost.busy).value;
  return sum;
}

// 32 layers of 512 tokens: the inputs of queries and of the output projection have 4096 numbers, their results 12288 and 4096. Nothing lies
// below the first layer's queries, so that they have no gradient of an input. 0.85 of 2.039 TB/s; 255 launches.
TEST(AdapterCost, PlansContainThePasses) {
  Plan plan = plan_of(16);
  const Cluster cluster = load_cluster("dgx-a100");
  FrameworkPreset preset = {.name = "none"};
  cost_plan(plan, cluster, preset);
  const double before = computes(plan);
  preset.styles.adapters = {.input = 5, .input_backward = 9, .result = 4, .result_backward = 4};
  cost_plan(plan, cluster, preset);
  const double bytes = 512.0 * (32 * (5 * 8192 + 8 * 16384) + 63 * 9 * 4096);
  const double launches = 255 * cluster.gpus.at(0).launch_overhead.value;
  EXPECT_NEAR(computes(plan) - before, bytes / (0.85 * 2.039e12) + launches, 0.02 * bytes / (0.85 * 2.039e12));
}

}  // namespace
}  // namespace foreshard::adapter_cost_test
