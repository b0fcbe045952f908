// Training with --precision fp8 on the host, which is the reference of what GPUs do.
#include <gtest/gtest.h>

#include "core/check/check_plan.h"
#include "tests/exec/training.h"

namespace foreshard::eight_bits_test {
namespace {

Strategy in_eight_bits(Strategy strategy = {}) {
  if (strategy.dp == 0) strategy.dp = 1;
  strategy.batch.global = 8, strategy.precision = DType::F8, strategy.attention = AttentionKernel::Flash;
  return strategy;
}

std::vector<double> losses(const Plan& plan, int steps) {
  static const CountingSamples samples;
  ExecuteOptions options = training(steps);
  options.samples = &samples;
  options.optimizer.learning_rate = 3e-3;
  std::vector<double> all;
  for (const StepReport& step : run(plan, options).steps) all.push_back(step.loss);
  return all;
}

// Learns as bf16 does, by numbers that are not those of bf16.
TEST(EightBits, TrainLikeBf16) {
  for (const Model& model : {twice_as_large(tiny_gpt()), twice_as_large(tiny_llama())}) {
    Strategy half = in_eight_bits({.batch = {.micro = 8}});
    half.precision = DType::BF16;
    const std::vector<double> eighth = losses(lowered(model, in_eight_bits({.batch = {.micro = 8}})), 20),
                              wider = losses(lowered(model, half), 20);
    EXPECT_LT(eighth.back(), eighth.front() / 2) << model.name;
    EXPECT_NE(eighth[1], wider[1]);
    for (std::size_t i = 0; i < wider.size(); ++i) EXPECT_NEAR(eighth[i] / wider[i], 1, 0.1) << model.name << i;
  }
}

// Each micro-batch is a product of its own, so ranks that hold whole products round as one device does, bit by bit: pipelines of every kind, and
// what is recomputed. (Tied embeddings are summed over two stages in another order.)
TEST(EightBits, PipelinesAndRecomputationGiveTheBitsOfOneDevice) {
  const Model model = tiny_gpt(false);
  const Execution one = run(lowered(model, in_eight_bits({.batch = {.micro = 2}, .dropout = 0.1})), training(2));
  for (Strategy way : std::vector<Strategy>{{.pp = 2},
                                            {.pp = 4, .pipeline = {.schedule = Schedule::GPipe}},
                                            {.pp = 2, .virtual_stages = 2, .pipeline = {.schedule = Schedule::Interleaved}},
                                            {.pp = 2, .pipeline = {.schedule = Schedule::ZeroBubbleH1}},
                                            {.recompute = {.kind = RecomputeKind::Full}},
                                            {.recompute = {.kind = RecomputeKind::Modules, .modules = {"norm", "mlp"}}},
                                            {.recompute = {.kind = RecomputeKind::Revolve, .checkpoints = 2}}}) {
    way.batch.micro = 2, way.dropout = 0.1, way.pipeline.layer_split = "";
    const Strategy strategy = in_eight_bits(way);
    const Plan plan = lowered(model, strategy);
    EXPECT_TRUE(check_plan(plan).empty()) << name_of(strategy);
    ExecuteOptions options = training(2);
    options.checks.poison = true;
    const Difference apart = difference(run(plan, options), one);
    EXPECT_EQ(apart.largest(), 0) << name_of(strategy) << " " << apart.worst;
  }
}

// Replicas sum the gradients of weights in another order, shards and all, in fp32 here: that is all that differs after a step.
TEST(EightBits, ReplicasAndShardsEqualOneDevice) {
  const Model model = tiny_llama();
  const auto in_fp32 = [](Strategy strategy) {
    strategy.batch.micro = 2, strategy.state_dtypes.grad = DType::F32;
    return in_eight_bits(strategy);
  };
  const Execution one = run(lowered(model, in_fp32({})), training(1));
  for (const Strategy& way : std::vector<Strategy>{{.dp = 2},
                                                   {.dp = 4},
                                                   {.dp = 2, .zero = {.stage = 1}},
                                                   {.dp = 4, .zero = {.stage = 2}},
                                                   {.dp = 2, .zero = {.stage = 3}},
                                                   {.dp = 2, .pp = 2, .zero = {.stage = 1}}}) {
    const Strategy strategy = in_fp32(way);
    const Difference apart = difference(run(lowered(model, strategy), training(1)), one);
    EXPECT_LE(apart.loss, 1e-6) << name_of(strategy);
    EXPECT_LE(apart.gradients, 1e-6) << name_of(strategy) << " " << apart.worst;
  }
}

// With tensor parallelism a part of a tensor has a scale of its own: close, not equal.
TEST(EightBits, PartsOfTensorParallelismHaveScalesOfTheirOwn) {
  const Model model = tiny_gpt();
  const std::vector<double> one = losses(lowered(model, in_eight_bits({.batch = {.micro = 4}})), 5),
                            two = losses(
                                lowered(model, in_eight_bits({.tp = 2, .sequence_parallel = true, .batch = {.micro = 4}})), 5);
  for (std::size_t i = 0; i < one.size(); ++i) EXPECT_NEAR(two[i] / one[i], 1, 0.02) << i;
}

}  // namespace
}  // namespace foreshard::eight_bits_test
