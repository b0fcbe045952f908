// Activation bytes of one layer against the published formulas (Korthikanti et al. 2022, and docs/cost-model.md).
#include <gtest/gtest.h>

#include <cstdint>
#include <string>
#include <vector>

#include "core/op_graph.h"
#include "core/op_graph_saved.h"
#include "tests/core/support_models.h"

namespace foreshard {
namespace {

Sharding unfused(std::int64_t micro_batch, int tp, bool sequence_parallel) {
  return {.micro_batch = micro_batch,
          .seq = 2048,
          .tp = tp,
          .sequence_parallel = sequence_parallel,
          .flash_attention = false,
          .dropout = 0.1,
          .compute = DType::F16,
          .param = DType::F16};
}

LayerGraph layer_of(const Model& model, const Sharding& sharding) { return build_op_graph(model, sharding).kinds[1]; }

std::int64_t layer_bytes(const Model& model, const Sharding& sharding, const std::vector<std::string>& modules = {}) {
  const LayerGraph layer = layer_of(model, sharding);
  return kept_bytes(layer, retention(layer, modules)).value;
}

// memory.md 5.1, 175B: u = s b h = 2048 * 12288 = 25,165,824; 5 a s / h = 80.
TEST(ActivationBytes, Gpt175B) {
  const Model model = gpt(96, 12288, 96);
  EXPECT_EQ(layer_bytes(model, unfused(1, 1, false)), 2868903936);                // u (34 + 80)
  EXPECT_EQ(layer_bytes(model, unfused(1, 8, false)), 578813952);                 // u (10 + 24/8 + 80/8)
  EXPECT_EQ(layer_bytes(model, unfused(1, 8, true)), 358612992);                  // u/8 (34 + 80)
  EXPECT_EQ(layer_bytes(model, unfused(1, 8, false), {"attention"}), 327155712);  // u (10 + 24/8)
  EXPECT_EQ(layer_bytes(model, unfused(1, 8, true), {"attention"}), 106954752);   // 34 u / 8
  const LayerGraph layer = layer_of(model, unfused(1, 8, false));
  EXPECT_EQ(kept_bytes(layer, full_recompute(layer)).value, 50331648);  // 2 u
}

TEST(ActivationBytes, Gpt22B) {
  const Model model = gpt(48, 6144, 64);
  EXPECT_EQ(layer_bytes(model, unfused(4, 1, false)), 7079985152);
  EXPECT_EQ(layer_bytes(model, unfused(4, 8, false)), 1325400064);
  EXPECT_EQ(layer_bytes(model, unfused(4, 8, true)), 884998144);
  EXPECT_EQ(layer_bytes(model, unfused(4, 8, false), {"attention"}), 654311424);
  EXPECT_EQ(layer_bytes(model, unfused(4, 8, true), {"attention"}), 213909504);
  const LayerGraph layer = layer_of(model, unfused(4, 8, false));
  EXPECT_EQ(kept_bytes(layer, full_recompute(layer)).value, 100663296);
}

// Activations of the first stage in GiB: per-layer bytes * L * (1 + (p - 1) / (p v)).
TEST(ActivationBytes, KorthikantiModelsFirstStage) {
  struct Row {
    int heads;
    std::int64_t hidden;
    int layers, p, v;
    std::int64_t b;
    double tp_only, sp_selective;
  };
  const std::vector<Row> rows = {{64, 6144, 48, 1, 0, 4, 59.25, 9.5625},
                                 {96, 12288, 96, 8, 3, 1, 66.84375, 12.3515625},
                                 {128, 20480, 105, 35, 3, 1, 114.0234375, 23.076171875},
                                 {160, 25600, 128, 64, 0, 1, 131.25, 26.5625}};
  for (const Row& row : rows) {
    const Model model = gpt(row.layers, row.hidden, row.heads);
    const double factor = row.v == 0 ? 1.0 : 1.0 + (row.p - 1.0) / (row.p * row.v);
    const auto gib = [&](std::int64_t bytes) { return in_gib({bytes}) * row.layers * factor; };
    EXPECT_DOUBLE_EQ(gib(layer_bytes(model, unfused(row.b, 8, false))), row.tp_only) << row.hidden;
    EXPECT_DOUBLE_EQ(gib(layer_bytes(model, unfused(row.b, 8, true), {"attention"})), row.sp_selective) << row.hidden;
  }
}

// Flash attention without dropout: 32 u + 4 b a s (log-sum-exp in fp32).
TEST(ActivationBytes, FlashWithoutDropout) {
  const Model model = gpt(12, 768, 12, 50257, 1024);
  const Sharding sharding = {.micro_batch = 4, .seq = 1024};
  EXPECT_EQ(layer_bytes(model, sharding), 32LL * 4 * 1024 * 768 + 4LL * 4 * 12 * 1024);
  const std::int64_t u = 4LL * 1024 * 768, lse = 4LL * 4 * 12 * 1024;
  EXPECT_EQ(layer_bytes(model, sharding, {"activation"}), 24 * u + lse);          // llm.c recompute 1
  EXPECT_EQ(layer_bytes(model, sharding, {"activation", "norm"}), 20 * u + lse);  // llm.c recompute 2
}

// SwiGLU and grouped queries, bf16, flash: 12 h + 4 h g / a + 6 f + 4 a bytes per token (memory.md section 3).
TEST(ActivationBytes, SwiGluGroupedQueries) {
  const Sharding sharding = {.micro_batch = 1, .seq = 4096};
  EXPECT_EQ(layer_bytes(llama(32, 4096, 11008, 32, 32, 32000), sharding), 4096LL * 131712);
  EXPECT_EQ(layer_bytes(llama(32, 4096, 14336, 32, 8, 128256), sharding), 4096LL * 139392);
  EXPECT_EQ(layer_bytes(llama(80, 8192, 28672, 64, 8, 128256), sharding), 4096LL * 274688);
  // Under tensor parallelism the two norm inputs, the QKV and the MLP input (8 h) are replicated, the rest is cut.
  EXPECT_EQ(layer_bytes(llama(80, 8192, 28672, 64, 8, 128256), {.micro_batch = 1, .seq = 4096, .tp = 8}),
            4096LL * (8 * 8192 + (274688 - 8 * 8192) / 8));
  EXPECT_EQ(layer_bytes(llama(80, 8192, 28672, 64, 8, 128256),
                        {.micro_batch = 1, .seq = 4096, .tp = 8, .sequence_parallel = true}),
            4096LL * 274688 / 8);
  // Context parallelism replaces s by s / cp: the gathered keys and values are not kept.
  EXPECT_EQ(layer_bytes(llama(80, 8192, 28672, 64, 8, 128256), {.micro_batch = 1, .seq = 4096, .cp = 4}),
            1024LL * 274688);
}

// Output head in Megatron, p = 1: 4 u (1 + V / h) / t, here with the targets' 8 bytes per token, the two row sums (8
// bytes) under tensor parallelism, and sequence parallelism for the first term.
TEST(ActivationBytes, HeadKeepsFp32Softmax) {
  const Model model = gpt(48, 6144, 64);
  const auto head = [&](const Sharding& s) {
    const LayerGraph layer = build_op_graph(model, s).kinds[2];
    return kept_bytes(layer, retention(layer)).value;
  };
  const std::int64_t tokens = 4 * 2048;
  EXPECT_EQ(head(unfused(4, 1, false)), 4 * tokens * (6144 + 51200) + 8 * tokens);
  EXPECT_EQ(head(unfused(4, 8, true)), 4 * tokens * (6144 + 51200) / 8 + 16 * tokens);
}

// Embedding: 8 bytes per token index and the dropout mask of one byte per element (memory.md section 4).
TEST(ActivationBytes, Embedding) {
  const LayerGraph layer = build_op_graph(gpt(48, 6144, 64), unfused(4, 8, true)).kinds[0];
  EXPECT_EQ(kept_bytes(layer, retention(layer)).value, 8 * 4 * 2048 + 4 * 2048 * 6144 / 8);
}

// Per element size: everything but masks, indices and fp32 statistics scales with the element.
TEST(ActivationBytes, ElementSizes) {
  const Model model = gpt(2, 256, 4, 1024, 128);
  const auto bytes = [&](DType type) {
    return layer_bytes(model,
                       {.micro_batch = 2, .seq = 128, .flash_attention = false, .dropout = 0.1, .compute = type});
  };
  const std::int64_t u = 2 * 128 * 256, scores = 2 * 4 * 128 * 128;  // 16-bit: u (32 + 2 masks), scores (4 + 1 mask)
  EXPECT_EQ(bytes(DType::BF16), 34 * u + 5 * scores);
  EXPECT_EQ(bytes(DType::F32), (64 + 2) * u + (8 + 1) * scores);
  EXPECT_EQ(bytes(DType::TF32), bytes(DType::F32));
  EXPECT_EQ(bytes(DType::F64), (128 + 2) * u + (16 + 1) * scores);
  EXPECT_EQ(bytes(DType::F8), bytes(DType::BF16));  // fp8 is a format of the products' operands only
}

}  // namespace
}  // namespace foreshard
