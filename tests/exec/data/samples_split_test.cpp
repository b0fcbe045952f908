// A training on a file reads the same samples under every split, on from a checkpoint of another split too.
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <random>

#include "exec/data/file_samples.h"
#include "tests/changed_text.h"
#include "tests/exec/checkpoint_folder.h"
#include "tests/exec/training.h"

namespace foreshard::samples_split_test {
namespace {

// Learning rates are small: the losses of several steps compare samples, not rounding.
struct SamplesOfSplits : CheckpointFolder {
  std::string text() const { return std::string(FORESHARD_SOURCE) + "/LICENSE"; }
  std::vector<double> losses(const Plan& plan, int steps, const std::string& resume = "", const std::string& save = "") const {
    const FileSamples samples(text(), TokenFormat::Bytes, sample_needs(plan), 7);
    ExecuteOptions options = training(steps);
    options.tensors = false, options.seed = 7;
    options.samples = &samples, options.resume = resume, options.save = save;
    std::vector<double> all;
    for (const StepReport& step : run(plan, options).steps) all.push_back(step.loss);
    return all;
  }
};

// A strategy of a global batch of 8 with up to eight ranks. `parts`: its tensor-parallel ranks cut micro-batches into samples.
Strategy drawn(std::mt19937& random, bool parts) {
  const auto any = [&](std::initializer_list<int> choices) { return choices.begin()[random() % choices.size()]; };
  Strategy strategy;
  do {
    strategy = {.dp = any({1, 2}), .tp = any({1, 2, 4}), .pp = any({1, 2}), .batch = {.micro = any({1, 2, 4})}};
    strategy.cp = any({1, 1, 2});
  } while (strategy.dp * strategy.tp * strategy.cp * strategy.pp > 8 || 8 % (strategy.dp * strategy.batch.micro) != 0 ||
           (parts && (strategy.tp == 1 || strategy.cp > 1 || strategy.batch.micro == 1)));
  strategy.sequence_parallel = strategy.tp > 1 && any({0, 1}) == 1;
  if (parts) strategy.communication.parts = {static_cast<int>(strategy.batch.micro)};
  return strategy;
}

std::string told(const Strategy& strategy) {
  return name_of(strategy) + " cp " + std::to_string(strategy.cp) + " parts " +
         ::testing::PrintToString(strategy.communication.parts) + (strategy.sequence_parallel ? " sequence parallel" : "");
}

TEST_F(SamplesOfSplits, AreThoseOfOneDevice) {
  Model model = tiny_llama();
  std::get<Transformer>(model.shape).vocab = 256;
  const Plan one = lowered(model, in_double({.batch = {.micro = 8}}));
  const SampleNeeds needs = sample_needs(one);
  EXPECT_EQ(needs.sequence, 16);
  const std::vector<double> whole = losses(one, 4);
  losses(one, 2, "", file("of_one"));
  std::mt19937 random(11);
  for (int i = 0; i < 16; ++i) {
    const Strategy strategy = drawn(random, i % 2 == 1);
    SCOPED_TRACE(told(strategy));
    const Plan plan = lowered(model, in_double(strategy));
    EXPECT_EQ(sample_needs(plan), needs);
    const std::vector<double> first = losses(plan, 2, "", file("of_split")), on = losses(plan, 2, file("of_one")),
                              back = losses(one, 2, file("of_split"));
    for (std::size_t s = 0; s < 2; ++s) {
      EXPECT_NEAR(first[s], whole[s], 1e-12);
      EXPECT_NEAR(on[s], whole[s + 2], 1e-12);
      EXPECT_NEAR(back[s], whole[s + 2], 1e-12);
    }
  }
}

// 16 tokens and the target of the last are 17.
TEST_F(SamplesOfSplits, AShortFileIsRefusedAlike) {
  std::ofstream(file("short")) << "sixteen tokens..";
  std::ofstream(file("enough")) << "seventeen tokens.";
  for (const Strategy& strategy :
       {Strategy{.batch = {.micro = 8}}, Strategy{.tp = 2, .batch = {.micro = 8}, .communication = {.parts = {8}}},
        Strategy{.tp = 2, .pp = 2, .batch = {.micro = 4}, .communication = {.parts = {2, 4}}},
        Strategy{.dp = 2, .batch = {.micro = 1}}, Strategy{.cp = 2, .batch = {.micro = 2}}}) {
    SCOPED_TRACE(told(strategy));
    const SampleNeeds needs = sample_needs(lowered(tiny_gpt(), in_double(strategy)));
    EXPECT_EQ(error_of([&] { FileSamples(file("short"), TokenFormat::Bytes, needs, 0); }),
              file("short") + ": data: found 16 tokens, expected at least 17: a sample of the model and its last target");
    EXPECT_EQ(error_of([&] { FileSamples(file("enough"), TokenFormat::Bytes, needs, 0); }), "no error");
  }
}

}  // namespace
}  // namespace foreshard::samples_split_test
