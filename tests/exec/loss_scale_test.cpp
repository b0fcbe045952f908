// A dynamic loss scale: what overflows is skipped on all ranks alike, and what does not is trained as without a scale.
#include "exec/arithmetic/loss_scale_state.h"

#include <gtest/gtest.h>

#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <filesystem>

#include "core/check/check_plan.h"
#include "exec/data/safetensors.h"
#include "tests/exec/training.h"

namespace foreshard::loss_scale_test {
namespace {

// Every step sees the samples of the first: a skipped step leaves no trace in the ones after it.
class SameSamples : public Samples {
 public:
  void tokens(std::int64_t sample, std::int64_t position, std::int64_t vocab, std::span<std::int64_t> out) const override {
    random_.tokens(sample % 8, position, vocab, out);
  }
  std::int64_t label(std::int64_t sample, std::int64_t classes) const override { return random_.label(sample % 8, classes); }
  void features(std::int64_t sample, std::int64_t first, std::span<double> out) const override {
    random_.features(sample % 8, first, out);
  }

 private:
  RandomSamples random_{7};
};

// The plan of a strategy with a dynamic loss scale that begins at 2^exponent.
Plan scaled(const Strategy& strategy, int exponent, int growth = 2000) {
  Plan plan = with_dynamic_scale(tiny_gpt(), strategy, exponent, growth);
  EXPECT_TRUE(check_plan(plan).empty());
  return plan;
}

Execution train(const Plan& plan, int steps, double learning_rate = 1e-3) {
  static const SameSamples samples;
  ExecuteOptions options = training(steps);
  options.samples = &samples;
  options.optimizer.learning_rate = learning_rate;
  options.optimizer.weight_decay = 0.1;
  return run(plan, options);
}

int skipped(const Execution& done) {
  int count = 0;
  for (const StepReport& step : done.steps) count += step.skipped;
  return count;
}

TEST(LossScale, HalvesAtAnOverflowAndDoublesAfterGoodSteps) {
  LossScaleState state;
  const auto step = [&](bool finite) {
    state = judged(state, finite, 3, -2);
    return std::tuple{state.used, state.exponent, state.good, state.skipped, state.skips};
  };
  using All = std::tuple<float, float, float, float, float>;
  EXPECT_EQ(step(true), All(0, 0, 1, 0, 0));
  EXPECT_EQ(step(true), All(0, 0, 2, 0, 0));
  EXPECT_EQ(step(true), All(0, 1, 0, 0, 0));  // the third in a row
  EXPECT_EQ(step(true), All(1, 1, 1, 0, 0));
  EXPECT_EQ(step(false), All(1, 0, 0, 1, 1));  // and the row begins again
  EXPECT_EQ(step(false), All(0, -1, 0, 2, 1));
  EXPECT_EQ(step(false), All(-1, -2, 0, 3, 1));
  EXPECT_EQ(step(false), All(-2, -2, 0, 4, 1));  // not below the least
  EXPECT_EQ(step(true), All(-2, -2, 1, 4, 0));
  const OpArguments given{.loss_scale = 16, .step = 9};
  EXPECT_EQ(with_loss_scale(given, {.exponent = 3, .used = 2, .skipped = 4}, Phase::InputGrad).loss_scale, 128);
  EXPECT_EQ(with_loss_scale(given, {.exponent = 3, .used = 2, .skipped = 4}, Phase::Update).loss_scale, 64);
  EXPECT_EQ(with_loss_scale(given, {.exponent = 3, .used = 2, .skipped = 4}, Phase::Update).step, 5);
}

// In fp16 a gradient above 65504 is infinite. The scale begins far too high: the first steps are skipped, each halves it, and
// until then no bit of the weights changes.
TEST(LossScale, AnOverflowSkipsTheStepInHalfPrecision) {
  const Strategy strategy = {.dp = 2, .tp = 2, .pp = 2, .batch = {.micro = 1, .global = 8}, .precision = DType::F16};
  const Plan plan = scaled(strategy, 30);
  const Execution done = train(plan, 24);
  const auto good = std::find_if(done.steps.begin(), done.steps.end(), [](const StepReport& step) { return !step.skipped; });
  const auto skips = static_cast<int>(good - done.steps.begin());
  ASSERT_GE(skips, 3);
  ASSERT_LE(skips, 20);
  double scale = std::ldexp(1, 30);
  for (int step = 0; step < 24; ++step) {
    const StepReport& report = done.steps[static_cast<std::size_t>(step)];
    EXPECT_EQ(report.loss_scale, scale) << step;
    if (report.skipped) scale /= 2;
    if (step <= skips) {
      EXPECT_EQ(report.loss, done.steps[0].loss) << step;
    }
  }
  EXPECT_LT(done.steps.back().loss, done.steps.front().loss);
  const Execution untouched = train(plan, skips), initial = train(scaled(strategy, 0), 1, 0);
  ASSERT_EQ(skipped(initial), 0);
  for (std::size_t t = 0; t < initial.values.size(); ++t) {
    EXPECT_EQ(untouched.values[t].elements, initial.values[t].elements);
    EXPECT_EQ(done.values[t].largest_difference, 0);
  }
}

// 2^518 times gradients of norm near 1 has a square that no double holds, so a few steps are skipped; then powers of two change
// no bit, and Adam counts the steps it has made: equal to a run without a scale that never saw the skipped steps.
TEST(LossScale, SkippedStepsLeaveNoTrace) {
  const Execution expected = train(lowered(tiny_gpt(), in_double({.batch = {.micro = 2}})), 3);
  for (const Strategy& strategy : std::vector<Strategy>{{.batch = {.micro = 2}},
                                                        {.dp = 2, .tp = 2, .pp = 2, .batch = {.micro = 1}},
                                                        {.dp = 4, .batch = {.micro = 1}, .zero = {.stage = 1}},
                                                        {.dp = 2, .pp = 2, .batch = {.micro = 1}, .zero = {.stage = 2}},
                                                        {.dp = 4, .batch = {.micro = 1}, .zero = {.stage = 3}}}) {
    SCOPED_TRACE(name_of(strategy));
    const Plan plan = scaled(in_double(strategy), 518);
    const int skips = skipped(train(plan, 10));
    ASSERT_GE(skips, 2);
    ASSERT_LE(skips, 8);
    Execution done = train(plan, skips + 3);
    EXPECT_EQ(skipped(done), skips);
    done.steps.erase(done.steps.begin(), done.steps.begin() + skips);
    divide_gradients(done, *done.steps.back().loss_scale);
    const Difference apart = difference(done, expected);
    EXPECT_LE(apart.largest(), 1e-12) << apart.worst;
  }
}

TEST(LossScale, GrowsAfterGoodSteps) {
  const Execution done = train(scaled(in_double({.pp = 2, .batch = {.micro = 2}, .optimizer = {.clip_norm = 0.01}}), 4, 2), 5);
  std::vector<double> scales;
  for (const StepReport& step : done.steps) scales.push_back(step.loss_scale.value_or(0));
  EXPECT_EQ(scales, (std::vector<double>{16, 16, 32, 32, 64}));
}

// Ranks that came to judge differently would drift apart without a word.
TEST(LossScale, RanksThatDisagreeStopTheRun) {
  Plan plan = scaled(in_double({.pp = 2, .batch = {.micro = 2}}), 4);
  bool first = true;
  for (Segment& segment : plan.segments)
    for (Instruction& instruction : segment.instructions)
      if (instruction.name == "loss scale" && std::exchange(first, false))
        std::get<ops::JudgeOverflow>(std::get<Compute>(instruction.what).op).growth = 1;
  try {
    train(plan, 3);
    FAIL() << "nobody noticed";
  } catch (const DeviceError& error) {
    EXPECT_NE(std::string(error.what()).find("rank 1 has another loss scale than rank 0"), std::string::npos) << error.what();
  }
}

// The scale, the good steps in a row and the skipped steps go with a checkpoint, to another split too.
TEST(LossScale, GoesWithACheckpoint) {
  const std::string path = testing::TempDir() + "foreshard-loss-scale-" + std::to_string(::getpid());
  const Plan one = scaled(in_double({.batch = {.micro = 2}}), 518, 3), split = scaled(in_double({.tp = 2, .pp = 2}), 518, 3);
  const Execution whole = train(one, 12);
  ASSERT_GE(skipped(whole), 2);
  static const SameSamples samples;
  ExecuteOptions options = training(6);
  options.samples = &samples;
  options.optimizer.weight_decay = 0.1;
  options.save = path;
  run(one, options);
  options.save = {}, options.resume = path;
  const Execution rest = run(split, options);
  std::filesystem::remove(path);
  for (std::size_t s = 0; s < 6; ++s) {
    EXPECT_EQ(rest.steps[s].loss_scale, whole.steps[s + 6].loss_scale) << s;
    EXPECT_EQ(rest.steps[s].skipped, whole.steps[s + 6].skipped) << s;
    EXPECT_NEAR(rest.steps[s].loss, whole.steps[s + 6].loss, 1e-12) << s;
  }
}

}  // namespace
}  // namespace foreshard::loss_scale_test
