#include "strategy/cost/framework_split.h"

#include <gtest/gtest.h>

namespace foreshard::framework_split_test {
namespace {

Transformer model(int layers, std::int64_t hidden, std::int64_t ffn, std::int64_t vocab) {
  return {.layers = layers,
          .hidden = hidden,
          .ffn_hidden = ffn,
          .heads = 32,
          .kv_heads = 32,
          .head_dim = hidden / 32,
          .vocab = vocab};
}

FrameworkPreset with(StageSplit split) { return {.defaults = {.split = split}}; }

// The benchmark's models of 1.34 and 8.86 billion parameters, split by nanotron's models/base.py.
TEST(FrameworkSplit, ByCost) {
  const FrameworkPreset preset = with(StageSplit::Cost);
  EXPECT_EQ(framework_split(preset, model(16, 2048, 8192, 131072), 2), "11,5");
  EXPECT_EQ(framework_split(preset, model(32, 4096, 14336, 131072), 2), "18,14");
  EXPECT_EQ(framework_split(preset, model(32, 4096, 14336, 131072), 4), "9,9,8,6");
  EXPECT_EQ(framework_split(preset, model(32, 4096, 14336, 131072), 1), "");
}

TEST(FrameworkSplit, Remainders) {
  EXPECT_EQ(framework_split(with(StageSplit::RemainderLast), model(32, 4096, 11008, 103168), 3), "10,11,11");
  EXPECT_EQ(framework_split(with(StageSplit::RemainderLast), model(32, 4096, 11008, 103168), 5), "6,6,6,7,7");
  EXPECT_EQ(framework_split(with(StageSplit::RemainderSecond), model(126, 16384, 53248, 128256), 8), "15,16,16,16,16,16,16,15");
  EXPECT_EQ(framework_split(with(StageSplit::RemainderLast), model(32, 4096, 11008, 103168), 4), "");
  EXPECT_EQ(framework_split(with(StageSplit::Even), model(32, 4096, 11008, 103168), 5), "");
}

// Embedding and head count as a layer each; the first stages have one more.
TEST(FrameworkSplit, EndsCountAsLayers) {
  const FrameworkPreset preset = with(StageSplit::Ends);
  EXPECT_EQ(framework_split(preset, model(40, 5120, 13824, 128000), 2), "20,20");
  EXPECT_EQ(framework_split(preset, model(40, 5120, 13824, 128000), 4), "10,11,10,9");
  EXPECT_EQ(framework_split(preset, model(60, 6656, 17920, 128000), 8), "7,8,8,8,8,8,7,6");
  EXPECT_EQ(framework_split(preset, model(60, 6656, 17920, 128000), 1), "");
  EXPECT_EQ(framework_split(preset, model(2, 6656, 17920, 128000), 4), "0,1,1,0");
  EXPECT_EQ(framework_split(preset, model(1, 6656, 17920, 128000), 4), "");  // fewer than stages
}

}  // namespace
}  // namespace foreshard::framework_split_test
