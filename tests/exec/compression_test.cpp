// Training with compressed communication: what has to be exact, and how far the loss is from that of sums as they are.
#include <gtest/gtest.h>

#include <cmath>

#include "core/strategy/compression.h"
#include "tests/core/support_models.h"
#include "tests/exec/checkpoint_folder.h"
#include "tests/exec/training.h"
#include "tests/how_many.h"

namespace foreshard::compression_test {
namespace {

// A transformer of two layers on 64 tokens: 300 steps of it take a second.
Model small_gpt() {
  Model model = gpt(2, 32, 4, 64, 16);
  std::get<Transformer>(model.shape).ffn_hidden = 64;
  return model;
}

// Samples count up, but two tokens of ten are drawn at random: the loss cannot go below the entropy of that.
class NoisySamples : public Samples {
 public:
  void tokens(std::int64_t sample, std::int64_t position, std::int64_t vocab, std::span<std::int64_t> out) const override {
    for (std::size_t i = 0; i < out.size(); ++i) {
      const std::int64_t at = position + static_cast<std::int64_t>(i);
      const std::uint64_t drawn = mixed(static_cast<std::uint64_t>(sample) * 4096 + static_cast<std::uint64_t>(at));
      const bool noise = drawn % 10 < 2;
      out[i] = noise ? static_cast<std::int64_t>(drawn / 16 % static_cast<std::uint64_t>(vocab))
                     : static_cast<std::int64_t>(mixed(static_cast<std::uint64_t>(sample)) % static_cast<std::uint64_t>(vocab) +
                                                 static_cast<std::uint64_t>(at)) %
                           vocab;
    }
  }
  std::int64_t label(std::int64_t, std::int64_t) const override { return 0; }
  void features(std::int64_t, std::int64_t, std::span<double>) const override {}

 private:
  static std::uint64_t mixed(std::uint64_t x) {  // splitmix64
    x += 0x9E3779B97F4A7C15U;
    x = (x ^ (x >> 30U)) * 0xBF58476D1CE4E5B9U;
    x = (x ^ (x >> 27U)) * 0x94D049BB133111EBU;
    return x ^ (x >> 31U);
  }
};

Strategy replicas(const Compression& gradients = {}) {
  Strategy s{.dp = 2, .batch = {.micro = 8, .global = 16}, .precision = DType::F32};
  s.communication.gradients = gradients;
  return s;
}
Strategy tensor_ranks(const Compression& activations = {}) {
  Strategy s{.dp = 1, .tp = 2, .batch = {.micro = 16, .global = 16}, .precision = DType::F32};
  s.communication.activations = activations;
  return s;
}

ExecuteOptions options(int steps) {
  static const NoisySamples samples;
  ExecuteOptions options = training(steps);
  options.samples = &samples;
  options.optimizer.learning_rate = 1e-2;
  return options;
}

double last_loss(const Execution& run) {  // the mean of the last 30 steps
  double sum = 0;
  for (std::size_t i = run.steps.size() - 30; i < run.steps.size(); ++i) sum += run.steps[i].loss / 30;
  return sum;
}

// Density 1 sends everything; nothing is ever left out.
TEST(CompressedTraining, EverythingKeptIsTheSumAsItIs) {
  const Execution plain = run(lowered(small_gpt(), replicas()), options(3));
  const Execution all = run(lowered(small_gpt(), replicas({.codec = Codec::Dgc, .kept = 1})), options(3));
  const Difference apart = difference(all, plain);
  EXPECT_EQ(apart.largest(), 0) << apart.worst;
}

TEST(CompressedTraining, AllTokensKeptIsBitIdentical) {
  for (const bool sequence : {false, true}) {
    const auto trained = [&](const Compression& activations) {
      Strategy s = tensor_ranks(activations);
      s.attention = AttentionKernel::Unfused, s.sequence_parallel = sequence;
      return run(lowered(small_gpt(), s), options(3));
    };
    const Execution plain = trained({}), all = trained({.tokens = 1});
    EXPECT_EQ(difference(all, plain).largest(), 0) << difference(all, plain).worst;
    EXPECT_GT(difference(trained({.tokens = 0.5}), plain).largest(), 1e-4);
    // In codes of all rows or of the rows of all tokens: the same.
    const Compression codes{.codec = Codec::Segmented, .bits = 8}, both{.codec = Codec::Segmented, .tokens = 1, .bits = 8};
    EXPECT_EQ(difference(trained(both), trained(codes)).largest(), 0) << sequence;
  }
}

// Momentum moves into the codec: with everything kept, DGC on SGD with momentum is SGD with momentum, but for rows of one dimension.
TEST(CompressedTraining, MomentumIsCorrectedBeforeTheNumbersAreChosen) {
  Strategy sgd = replicas();
  sgd.optimizer = {.kind = OptimizerKind::Sgd, .momentum = 0.9};
  Strategy kept = sgd;
  kept.communication.gradients = {.codec = Codec::Dgc, .kept = 1};
  const Execution plain = run(lowered(small_gpt(), sgd), options(1)), all = run(lowered(small_gpt(), kept), options(1));
  EXPECT_LT(difference(all, plain).values, 1e-6);  // the first step; after it places that were sent begin at 0 again
}

// Tensor-parallel ranks have copies of norms and biases, stages one of the embedding: all stay equal, whatever is sent as codes.
TEST(CompressedTraining, CopiesStayEqualInEveryLayout) {
  for (const Compression& gradients : some_of<Compression>(
           {{.codec = Codec::Segmented, .bits = 4}, {.codec = Codec::Dgc, .kept = 0.1}, {.codec = Codec::OneBit, .warm_up = 1}},
           1))
    for (const Compression& activations :
         {Compression{.codec = Codec::Segmented, .bits = 8, .segments = 8}, Compression{.tokens = 0.75},
          Compression{.codec = Codec::Segmented, .tokens = 0.75, .bits = 8}}) {
      Strategy s{.dp = 2, .tp = 2, .pp = 2, .batch = {.micro = 2, .global = 16}, .precision = DType::F32};
      s.sequence_parallel = activations.codec != Codec::None;
      s.recompute.kind = RecomputeKind::Full;
      const Execution plain = run(lowered(small_gpt(), s), options(4));
      s.communication.gradients = gradients, s.communication.activations = activations;
      s.communication.bucket = {20'000};
      if (gradients.codec != Codec::OneBit) s.optimizer.clip_norm = 10;
      const Execution coded = run(lowered(small_gpt(), s), options(4));
      for (std::size_t i = 0; i < coded.values.size(); ++i)
        EXPECT_EQ(coded.values[i].largest_difference, 0)
            << to_text(gradients) << " " << to_text(activations) << " " << coded.result.plan.tensors[i].name;
      EXPECT_NEAR(coded.steps.back().loss, plain.steps.back().loss, 0.2) << to_text(gradients) << to_text(activations);
      EXPECT_NE(coded.steps.back().loss, plain.steps.back().loss);
    }
}

// 300 steps: the loss of sums as they are goes from ln 64 = 4.16 to less than half of it.
class CompressedLosses : public CheckpointFolder {
 protected:
  static constexpr int kSteps = 300, kWarm = 60;
  static Execution train(const Compression& codec) { return run(lowered(small_gpt(), replicas(codec)), options(kSteps)); }
};

TEST_F(CompressedLosses, StayWithinTwoPercent) {
  const Execution plain = train({});
  ASSERT_NEAR(plain.steps.front().loss, std::log(64.0), 0.1);
  ASSERT_LT(last_loss(plain), std::log(64.0) / 2);
  for (const Compression& codec : {Compression{.codec = Codec::EightBit}, Compression{.codec = Codec::Segmented, .bits = 8},
                                   Compression{.codec = Codec::Segmented, .bits = 4}}) {
    const Execution coded = train(codec);
    EXPECT_LT(last_loss(coded) / last_loss(plain), 1.02) << to_text(codec);
    EXPECT_NE(coded.steps[1].loss, plain.steps[1].loss);
    for (const WholeTensor& tensor : coded.values) EXPECT_EQ(tensor.largest_difference, 0) << "replicas differ";
  }
}

// Codes of the rows that are kept cost next to nothing beside what the rows cost that are not.
TEST_F(CompressedLosses, OfKeptTokensInCodesAreThoseOfKeptTokens) {
  const auto trained = [](const Compression& codec, bool sequence) {
    Strategy s = tensor_ranks(codec);
    s.sequence_parallel = sequence;
    return last_loss(run(lowered(small_gpt(), s), options(200)));
  };
  const Compression kept{.tokens = 0.5}, both{.codec = Codec::Segmented, .tokens = 0.5, .bits = 8};
  for (const bool sequence : {false, true}) EXPECT_NEAR(trained(both, sequence) / trained(kept, sequence), 1, 0.02) << sequence;
}

// The moments begin with those of a plan without the codec, in the same number of steps.
TEST_F(CompressedLosses, OfSignsOfMomentsStayWithinTwoPercent) {
  ExecuteOptions warm = options(kWarm), rest = options(kSteps - kWarm);
  warm.save = rest.resume = file("begin");
  const Execution begin = run(lowered(small_gpt(), replicas()), warm);
  const Execution signs = run(lowered(small_gpt(), replicas({.codec = Codec::OneBit, .warm_up = kWarm})), rest);
  const Execution plain = train({});
  EXPECT_EQ(signs.steps.front().loss, plain.steps[kWarm].loss);
  EXPECT_LT(last_loss(signs) / last_loss(plain), 1.02);
}

}  // namespace
}  // namespace foreshard::compression_test
