// The workspace of cuDNN's attention: what cuDNN 9.19 answers for forms of real models on four GPUs, and from which size on a run does without.
#include "core/plan/attention_memory.h"

#include <gtest/gtest.h>

namespace foreshard::attention_memory_test {
namespace {

constexpr std::int64_t kMiB = 1 << 20, kGiB = std::int64_t{1} << 30;

struct Answer {
  const char* name = "";
  AttentionSizes sizes = {};
  bool any_order = false;
  std::int64_t h200 = 0, a100 = 0, b200 = 0, rtx5090 = 0;  // bytes; 0: was not asked
};

AttentionSizes sizes(std::int64_t samples, std::int64_t heads, std::int64_t kv_heads, std::int64_t positions,
                     std::int64_t dim) {
  return {samples, heads, kv_heads, positions, positions, dim, dim};
}

// Answers to the graphs of exec/cuda/module/cudnn_attention.cpp for the backward, in 16 bits.
const std::vector<Answer>& answers() {
  static const std::vector<Answer> all = {
      {"a billion parameters, D 64", sizes(4, 14, 14, 2048, 64), false, 470'221'056},
      {"a billion parameters, D 128", sizes(4, 14, 14, 2048, 128), false, 470'221'056},
      {"a billion parameters, D 256", sizes(4, 14, 14, 2048, 256), false, 470'221'056},
      {"a billion parameters, any order", sizes(4, 14, 14, 2048, 128), true, 59'179'264, 117'899'392, 59'179'008, 117'899'392},
      {"llama-3-8b", sizes(1, 32, 8, 8192, 128), false, 4'430'233'856},
      {"llama-3-8b, any order", sizes(1, 32, 8, 8192, 128), true, 269'484'288},
      {"llama-3-8b, S 2048", sizes(1, 32, 8, 2048, 128), false, 302'252'288},
      {"bert with dropout", sizes(8, 16, 16, 512, 64), false, 67'371'264},
      {"gpt2 with dropout", sizes(8, 12, 12, 1024, 64), false, 201'720'064},
      {"gpt2 with dropout, any order", sizes(8, 12, 12, 1024, 64), true, 25'559'296},
      {"latent heads", {1, 16, 16, 4096, 4096, 192, 128}, false, 537'133'312},
      {"latent heads, any order", {1, 16, 16, 4096, 4096, 192, 128}, true, 50'594'048},
      {"positions of no whole tile", sizes(2, 8, 8, 1000, 64), false, 33'618'688},
      {"keys of another sequence", {2, 8, 8, 77, 300, 64, 64}, false, 1'578'048},
      {"one head", sizes(1, 1, 1, 2048, 128), false, 8'397'056},
      {"32 positions", sizes(2, 4, 4, 32, 16), false, 132'352},
      {"64 positions, D 40", sizes(2, 4, 4, 64, 40), false, 133'376},
      {"llama-3-8b over eight, S 131072", sizes(1, 4, 1, 131'072, 128), false, 137'709'486'336, 137'709'486'208, 538'968'192,
       137'709'486'208},
      {"llama-3-8b over eight, S 131072, any order", sizes(1, 4, 1, 131'072, 128), true, 538'968'320, 807'403'648, 538'968'192,
       807'403'648},
      {"llama-3-8b, S 131072", sizes(1, 32, 8, 131'072, 128), false, 1'101'675'888'896},
      {"llama-3-8b, S 131072, any order", sizes(1, 32, 8, 131'072, 128), true, 4'311'744'768, 6'459'228'288, 4'311'744'640,
       6'459'228'288},
      {"a probe of calibrate", sizes(1, 16, 16, 32'768, 64), false, 34'361'835'776, 34'361'835'648, 2'097'152, 34'361'835'648}};
  return all;
}

}  // namespace

// Maps are exact but for the last mebibyte; of the other sums Ampere has two arrays, Hopper one.
TEST(AttentionMemory, IsAnUpperBoundOfWhatTheLibraryAnswers) {
  for (const Answer& answer : answers()) {
    const std::pair<int, std::int64_t> gpus[] = {
        {90, answer.h200}, {80, answer.a100}, {100, answer.b200}, {120, answer.rtx5090}};
    for (const auto& [capability, bytes] : gpus) {
      if (bytes == 0) continue;
      const FixedOrder order = fixed_order_of(capability);
      const std::int64_t bound = attention_workspace(answer.sizes, order, answer.any_order).value;
      EXPECT_GE(bound, bytes) << answer.name << ", sm " << capability;
      if (capability != 100 && !answer.any_order)
        EXPECT_LE(bound, bytes + kMiB) << answer.name << ", sm " << capability;
      else if (capability == 80)
        EXPECT_LE(bound, bytes + kMiB) << answer.name << ", sm " << capability;
    }
  }
}

TEST(AttentionMemory, GpusByTheirCapability) {
  EXPECT_EQ(fixed_order_of(0), FixedOrder::None);
  EXPECT_EQ(fixed_order_of(70), FixedOrder::None);
  for (const int capability : {80, 86, 89, 90, 100, 103, 120, 121})
    EXPECT_EQ(fixed_order_of(capability), FixedOrder::ByMap) << capability;
}

// A seventh, rounded down to a power of two; what a GPU reports is up to a fiftieth less than its datasheet.
TEST(AttentionMemory, TheLimitIsTheSameForADatasheetAndAGpu) {
  const std::pair<std::int64_t, std::int64_t> limits[] = {{16, 2}, {24, 2}, {32, 4},   {40, 4},   {48, 4},   {64, 8},
                                                          {80, 8}, {96, 8}, {141, 16}, {180, 16}, {192, 16}, {288, 32}};
  for (const auto& [memory, limit] : limits) {
    EXPECT_EQ(attention_workspace_limit({memory * kGiB}).value, limit * kGiB) << memory;
    EXPECT_EQ(attention_workspace_limit({memory * kGiB / 100 * 98}).value, limit * kGiB) << memory;
  }
  EXPECT_EQ(attention_workspace_limit({0}).value, 0);
}

static ops::Attention heads(std::int64_t heads, std::int64_t kv_heads, std::int64_t dim) {
  ops::Attention op;
  op.causal = true, op.heads = heads, op.kv_heads = kv_heads, op.dim = dim;
  return op;
}
static std::vector<Shape> shapes(const ops::Attention& op, std::int64_t positions, DType dtype = DType::BF16) {
  return {{{1, positions, op.heads, op.dim}, dtype}, {{1, positions, op.kv_heads, op.dim}, dtype}};
}

// What a run may need: the map while it is within the limit (80 GiB: 8 GiB), then the sums in any order, which need more than our kernels.
TEST(AttentionMemory, BeyondTheLimitARunDoesWithoutTheMap) {
  const ops::Attention op = heads(32, 8, 128);
  const Bytes gpu = {80 * kGiB};
  const auto memory = [&](std::int64_t positions, FixedOrder order = FixedOrder::ByMap, DType dtype = DType::BF16) {
    return attention_memory(op, shapes(op, positions, dtype), order, gpu);
  };
  EXPECT_EQ(memory(8192), attention_workspace(attention_sizes(op, shapes(op, 8192)), FixedOrder::ByMap, false));
  EXPECT_GT(memory(8192).value, 4 * kGiB);
  EXPECT_EQ(memory(16'384), attention_workspace(attention_sizes(op, shapes(op, 16'384)), FixedOrder::ByMap, true));
  EXPECT_LT(memory(16'384).value, kGiB);
  EXPECT_EQ(memory(8192, FixedOrder::ByMap, DType::F8), memory(8192));  // products in 8 bits, the attention in 16
  // Without the library: row sums of our own kernels, 4 bytes for each query and head; on other devices nothing.
  EXPECT_EQ(memory(8192, FixedOrder::ByMap, DType::F32).value, 4 * 32 * 8192);
  EXPECT_EQ(memory(8192, FixedOrder::None).value, 0);
  // The map's last byte within the limit: 2 a S^2 = 8 GiB with 4 heads and S = 32768, and the row sums are beyond it.
  const ops::Attention border = heads(4, 4, 64);
  EXPECT_LT(attention_memory(border, shapes(border, 32'768), FixedOrder::ByMap, gpu).value, kGiB);
  EXPECT_EQ(attention_memory(border, shapes(border, 32'640), FixedOrder::ByMap, gpu),
            attention_workspace(attention_sizes(border, shapes(border, 32'640)), FixedOrder::ByMap, false));
}

TEST(AttentionMemory, WhatTheLibraryDoesNotHave) {
  const auto beyond = [](const auto& change) {
    ops::Attention op = heads(4, 4, 64);
    change(op);
    return beyond_library(op);
  };
  EXPECT_EQ(beyond([](ops::Attention&) {}), "");
  EXPECT_EQ(beyond([](ops::Attention& op) { op.window = 128; }), "");
  EXPECT_EQ(beyond([](ops::Attention& op) { op.value_dim = 128; }), "");
  EXPECT_EQ(beyond([](ops::Attention& op) { op.sinks = true; }), "sinks");
  EXPECT_EQ(beyond([](ops::Attention& op) { op.score_cap = 50; }), "caps of scores");
  EXPECT_EQ(beyond([](ops::Attention& op) { op.chunk = 128; }), "chunks of positions");
  EXPECT_NE(beyond([](ops::Attention& op) { op.dim = 20; }), "");
  EXPECT_NE(beyond([](ops::Attention& op) { op.dim = 264; }), "");
  EXPECT_NE(beyond([](ops::Attention& op) { op.split = {.ranks = 2, .chunks = 2}; }), "");
  EXPECT_EQ(beyond([](ops::Attention& op) { op.split = {.ranks = 2, .chunks = 2}, op.causal = false; }), "");
}

}  // namespace foreshard::attention_memory_test
