// Which style of a preset an operator takes, and what it costs then.
#include "strategy/cost/operator_style.h"

#include <gtest/gtest.h>

#include "core/cluster_file/cluster_file.h"
#include "core/network/network.h"

namespace foreshard::operator_style_test {
namespace {

// 32 maps of 2048 queries and keys.
Compute softmax(bool causal, Phase phase = Phase::Forward) {
  return {.op = ops::Softmax{.causal = causal}, .phase = phase, .shapes = {{.dims = {32 * 2048, 2048}, .dtype = DType::BF16}}};
}

// Megatron's kernel for causal attention reads half of the scores and writes all results: 3 bytes of 4, in the backward 4 of 6. Attention
// in both directions has another kernel, and maps that no kernel takes run as plain operators whether causal or not.
TEST(OperatorStyle, ACausalSoftmaxReadsUpToTheDiagonal) {
  const Cluster cluster = load_cluster("dgx-a100");
  const Gpu& gpu = Network(cluster).gpu({0});
  const FrameworkPreset megatron = framework_preset("megatron");
  const auto slowdown = [&](bool causal, Phase phase) { return slowdown_of(gpu, megatron, softmax(causal, phase)); };
  EXPECT_NEAR(slowdown(true, Phase::Forward) / slowdown(false, Phase::Forward), 3.0 / 4, 1e-3);
  EXPECT_NEAR(slowdown(true, Phase::InputGrad) / slowdown(false, Phase::InputGrad), 4.0 / 6, 1e-3);

  EXPECT_EQ(framework_preset("megatron-deepspeed-2020").styles.causal_softmax,
            std::nullopt);  // like one that has it, without the kernel

  FrameworkPreset other = megatron;
  other.styles.softmax_maps.multiple = 64;
  for (const bool causal : {false, true}) EXPECT_EQ(&style_of(other, softmax(causal)), &other.styles.softmax_maps.otherwise);
  other = megatron;
  other.styles.causal_softmax.reset();
  EXPECT_EQ(&style_of(other, softmax(true)), &other.styles.softmax);
}

}  // namespace
}  // namespace foreshard::operator_style_test
