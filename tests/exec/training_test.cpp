#include "tests/exec/training.h"

#include <gtest/gtest.h>

#include <cmath>

namespace foreshard::training_test {
namespace {

// Before the first step the logits are small and nearly equal: the loss is that of guessing, ln 128 = 4.852.
TEST(Training, StartsAtGuessingAndLearns) {
  const CountingSamples samples;
  ExecuteOptions options = training(30);
  options.samples = &samples;
  options.optimizer.learning_rate = 1e-2;
  const Execution one = run(lowered(tiny_gpt(), in_double({.batch = {.micro = 8}})), options);
  EXPECT_NEAR(one.steps.front().loss, std::log(128.0), 0.1);
  EXPECT_LT(one.steps.back().loss, one.steps.front().loss / 2);
  // The same curve under eight ranks.
  const Strategy split = in_double({.dp = 2, .tp = 2, .pp = 2, .batch = {.micro = 1}});
  const Execution eight = run(lowered(tiny_gpt(), split), options);
  for (std::size_t i = 0; i < one.steps.size(); ++i) EXPECT_NEAR(eight.steps[i].loss, one.steps[i].loss, 1e-9) << i;
}

// The same weights in single precision: rounding, not strategy, is what remains.
TEST(Training, SinglePrecisionStaysWithinItsRounding) {
  Strategy one = {.dp = 1, .batch = {.micro = 2, .global = 8}, .precision = DType::F32};
  Strategy split = {.dp = 2, .tp = 2, .pp = 2, .batch = {.micro = 1, .global = 8}, .precision = DType::F32};
  ExecuteOptions options = training(2);
  options.optimizer.eps = 1e-3;
  const Difference apart = difference(run(lowered(tiny_gpt(), split), options), run(lowered(tiny_gpt(), one), options));
  EXPECT_LT(apart.loss, 1e-5);
  EXPECT_LT(apart.gradients, 1e-4) << apart.worst;
  EXPECT_GT(apart.gradients, 0);
}

// 16-bit storage with fp32 master weights trains as well; only the loss is compared, with two digits.
TEST(Training, MixedPrecisionRuns) {
  Strategy one = {.dp = 1, .batch = {.micro = 2, .global = 8}, .attention = AttentionKernel::Unfused};
  Strategy split = one;
  split.dp = 2, split.tp = 2, split.zero.stage = 1;
  const Execution a = run(lowered(tiny_gpt(), split), training(2)), b = run(lowered(tiny_gpt(), one), training(2));
  for (std::size_t i = 0; i < a.steps.size(); ++i) EXPECT_NEAR(a.steps[i].loss, b.steps[i].loss, 0.02);
}

}  // namespace
}  // namespace foreshard::training_test
