// Activation bytes of one layer against the published formulas (Korthikanti et al. 2022, and docs/cost-model.md).
#include <gtest/gtest.h>

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "core/graph/op_graph.h"
#include "core/graph/op_graph_saved.h"
#include "tests/core/support_models.h"

namespace foreshard::memory_formulas_test {
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
  EXPECT_EQ(
      layer_bytes(llama(80, 8192, 28672, 64, 8, 128256), {.micro_batch = 1, .seq = 4096, .tp = 8, .sequence_parallel = true}),
      4096LL * 274688 / 8);
  // Context parallelism replaces s by s / cp: the gathered keys and values are not kept.
  EXPECT_EQ(layer_bytes(llama(80, 8192, 28672, 64, 8, 128256), {.micro_batch = 1, .seq = 4096, .cp = 4}), 1024LL * 274688);
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
    return layer_bytes(model, {.micro_batch = 2, .seq = 128, .flash_attention = false, .dropout = 0.1, .compute = type});
  };
  const std::int64_t u = 2 * 128 * 256, scores = 2 * 4 * 128 * 128;  // 16-bit: u (32 + 2 masks), scores (4 + 1 mask)
  EXPECT_EQ(bytes(DType::BF16), 34 * u + 5 * scores);
  EXPECT_EQ(bytes(DType::F32), (64 + 2) * u + (8 + 1) * scores);
  EXPECT_EQ(bytes(DType::TF32), bytes(DType::F32));
  EXPECT_EQ(bytes(DType::F64), (128 + 2) * u + (16 + 1) * scores);
}

// The itemisation of memory.md section 3, bytes per element of u (scores: of b a s^2), and its split under tensor parallelism.
TEST(ActivationBytes, ItemisationOfTheLayer) {
  const Model model = gpt(4, 1024, 16, 1024, 256);
  const auto items = [&](int tp) {
    const Sharding sharding = {.micro_batch = 2, .seq = 256, .tp = tp, .flash_attention = false, .dropout = 0.1};
    const LayerGraph layer = layer_of(model, sharding);
    std::map<std::string, std::int64_t> bytes;
    for (const int v : retention(layer).kept) {
      bytes[layer.values[static_cast<std::size_t>(v)].name] = layer.values[static_cast<std::size_t>(v)].bytes.value;
    }
    return bytes;
  };
  const std::int64_t u = 2 * 256 * 1024, scores = 2 * 16 * 256 * 256;
  const std::map<std::string, std::int64_t> replicated = {{"x", 2 * u},          {"norm1_out", 2 * u},
                                                          {"residual1_mask", u}, {"residual1_out", 2 * u},
                                                          {"norm2_out", 2 * u},  {"residual2_mask", u}};
  const std::map<std::string, std::int64_t> cut = {{"qkv", 6 * u},
                                                   {"probabilities", 2 * scores},
                                                   {"attention_dropout_mask", scores},
                                                   {"attention_dropout_out", 2 * scores},
                                                   {"context", 2 * u},
                                                   {"fc1_out", 8 * u},
                                                   {"activation_out", 8 * u}};
  for (const int tp : {1, 4}) {
    std::map<std::string, std::int64_t> expected = replicated;
    for (const auto& [name, bytes] : cut) expected[name] = bytes / tp;
    EXPECT_EQ(items(tp), expected) << tp;
  }
}

// ---- Formulas of other estimators, kept as named functions so that their numbers stay explained ----

// ZeRO paper, table 1: GB per GPU with Adam, fp16 parameters and gradients, 12 bytes of optimizer state.
double zero_gigabytes(double parameters, double ranks, int stage) {
  const double bytes = stage == 1 ? 4 + 12 / ranks : stage == 2 ? 2 + 14 / ranks : 16 / ranks;
  return parameters * bytes / 1e9;
}

TEST(MemoryFormulas, ZeroTable1) {
  struct Row {
    double parameters, ranks, optimizer, gradients, all;
    double unit;
  };
  for (const Row& row : {Row{7.5e9, 1, 120, 120, 120, 0.01}, Row{7.5e9, 4, 52.5, 41.25, 30, 0.01},
                         Row{7.5e9, 64, 31.41, 16.64, 1.875, 0.01}, Row{7.5e9, 1024, 30.09, 15.10, 0.117, 0.01},
                         Row{128e9, 64, 536, 284, 32, 0.5}, Row{1e12, 1024, 4011.7, 2013.7, 15.6, 0.1}}) {
    EXPECT_NEAR(zero_gigabytes(row.parameters, row.ranks, 1), row.optimizer, row.unit);
    EXPECT_NEAR(zero_gigabytes(row.parameters, row.ranks, 2), row.gradients, row.unit);
    EXPECT_NEAR(zero_gigabytes(row.parameters, row.ranks, 3), row.all, row.unit);
  }
}

// Megatron-LM megatron/training/theoretical_memory_usage.py, MiB of the first stage.
struct MegatronCase {
  double layers, hidden, ffn, heads, groups, vocab, seq, batch;
  double t, p, v, d;
  bool swiglu, untied, distributed, sequence_parallel;
};
double megatron_states_mib(const MegatronCase& c) {
  const double gate = c.swiglu ? 1.5 : 1;
  const double products = 2 * c.layers * c.hidden * c.hidden * (1 + c.groups / c.heads + c.ffn / c.hidden * gate);
  const double norms = (2 * c.layers + 1) * c.hidden * (c.swiglu ? 1 : 2);  // RMSNorm has no bias; not cut over t
  const double embedding = c.hidden * c.vocab;
  double most = (products / c.p + embedding) / c.t + norms / c.p;
  if (c.untied && c.p == 1) most += embedding / c.t;
  return most * (c.distributed ? 6 + 12 / c.d : 18) / 1048576;
}
double megatron_activations_mib(const MegatronCase& c) {
  const double u = c.seq * c.batch * c.hidden;
  const double layer = c.sequence_parallel ? u * (18 + 4 * c.ffn / c.hidden) / c.t : u * (10 + 24 / c.t);
  const double ends = (8 * c.seq * c.batch + u) * c.p / (c.sequence_parallel ? c.t : 1);
  double bytes = layer * c.layers + ends;
  if (c.v > 1) bytes *= 1 + (c.p - 1) / (c.p * c.v);
  if (c.p == 1) bytes += 4 * u * (1 + c.vocab / c.hidden) / c.t;
  return bytes * (c.sequence_parallel ? 1 : 1.05) / 1048576;
}

TEST(MemoryFormulas, MegatronEstimator) {
  const MegatronCase large = {96, 12288, 49152, 96, 96, 51200, 2048, 1, 8, 8, 3, 1, false, false, false, true};
  EXPECT_NEAR(megatron_states_mib(large), 48016.18, 0.005);
  EXPECT_NEAR(megatron_activations_mib(large), 12679.02, 0.005);
  MegatronCase plain = large;
  plain.v = 1;
  EXPECT_NEAR(megatron_activations_mib(plain), 9816.02, 0.005);
  MegatronCase small = {48, 6144, 24576, 64, 64, 51200, 2048, 4, 8, 1, 1, 1, false, false, false, true};
  EXPECT_NEAR(megatron_states_mib(small), 47351.46, 0.005);
  EXPECT_NEAR(megatron_activations_mib(small), 10022.01, 0.005);
  small.d = 8;
  small.distributed = true;
  EXPECT_NEAR(megatron_states_mib(small), 19729.78, 0.005);
  MegatronCase seven = {32, 4096, 11008, 32, 32, 32000, 4096, 1, 2, 2, 1, 2, true, true, true, true};
  EXPECT_NEAR(megatron_states_mib(seven), 19279.52, 0.005);
  EXPECT_NEAR(megatron_activations_mib(seven), 7376.03, 0.005);
  seven.sequence_parallel = false;
  EXPECT_NEAR(megatron_activations_mib(seven), 11860.87, 0.005);
}

// DeepSpeed's ZeRO-3 estimator (deepspeed/runtime/zero/stage3.py): bytes on a GPU, and on the host with zero.Init.
enum class Offload { None, Optimizer, All };
double deepspeed_gpu(double parameters, double largest, double gpus, Offload offload) {
  const double states = offload == Offload::None ? 18 : offload == Offload::Optimizer ? 2 : 0;
  return 4 * largest + states * parameters / gpus;
}
double deepspeed_host(double parameters, double largest, double gpus_per_node, double nodes, Offload offload) {
  if (offload == Offload::None) return 1.5 * 4 * largest * gpus_per_node;
  return 1.5 * (offload == Offload::Optimizer ? 16 : 18) * parameters / nodes;
}

TEST(MemoryFormulas, DeepSpeedZero3Estimator) {
  constexpr double gib = 1073741824, mib = 1048576;
  EXPECT_NEAR(deepspeed_gpu(2851e6, 32e6, 8, Offload::None) / gib, 6.09, 0.005);
  EXPECT_NEAR(deepspeed_host(2851e6, 32e6, 8, 1, Offload::None) / gib, 1.43, 0.005);
  EXPECT_NEAR(deepspeed_gpu(2851e6, 32e6, 8, Offload::Optimizer) / gib, 0.78, 0.005);
  EXPECT_NEAR(deepspeed_host(2851e6, 32e6, 8, 1, Offload::Optimizer) / gib, 63.72, 0.005);
  EXPECT_NEAR(deepspeed_gpu(2851e6, 32e6, 8, Offload::All) / gib, 0.12, 0.005);
  EXPECT_NEAR(deepspeed_host(2851e6, 32e6, 8, 1, Offload::All) / gib, 71.69, 0.005);
  EXPECT_NEAR(deepspeed_gpu(737.67e6, 32.90e6, 4, Offload::None) / mib, 3291, 1);
  EXPECT_NEAR(deepspeed_gpu(737.67e6, 32.90e6, 4, Offload::All) / mib, 125, 1);
  EXPECT_NEAR(deepspeed_gpu(737.67e6, 32.90e6, 4, Offload::Optimizer) / mib, 477, 1);
}

// llm.c's activation tensors for GPT-2 124M (B 4, T 1024, padded vocabulary 50304) from our graph, plus what differs: it keeps
// norm statistics (two fp32 per norm and token), has scratch of 5 values per channel and one loss per token, and its fused
// classifier needs only the bf16 logits where we keep the fp32 softmax and the targets.
std::int64_t llm_c_bytes(const std::vector<std::string>& recompute, bool flash) {
  const Model model = gpt(12, 768, 12, 50257, 1024);
  const std::int64_t tokens = 4 * 1024, u = tokens * 768, vocab = 50304;
  const OpGraph graph = build_op_graph(model, {.micro_batch = 4, .seq = 1024, .flash_attention = flash, .vocab_multiple = 128});
  const auto kept = [&](std::size_t kind) {
    return kept_bytes(graph.kinds[kind], retention(graph.kinds[kind], kind == 1 ? recompute : std::vector<std::string>{}))
        .value;
  };
  const std::int64_t classifier = tokens * vocab * (2 - 4) - 8 * tokens;
  const std::int64_t statistics = (2 * 12 + 1) * 2 * 4 * tokens, losses = 4 * tokens, scratch = 5 * 2 * u;
  // With GELU recomputed, one layer's result is kept as the place it is made in.
  const std::int64_t gelu = recompute.empty() ? 0 : 8 * u;
  return 12 * kept(1) + kept(2) + classifier + statistics + losses + scratch + gelu;
}

TEST(MemoryFormulas, LlmCGpt2) {
  EXPECT_EQ(llm_c_bytes({}, true), 1667284992);
  EXPECT_EQ(llm_c_bytes({"activation"}, true), 1390460928);
  EXPECT_EQ(llm_c_bytes({"activation", "norm"}, true), 1239465984);
  EXPECT_EQ(llm_c_bytes({}, false), 2872885248);
  EXPECT_EQ(llm_c_bytes({"activation"}, false), 2596061184);
  EXPECT_EQ(llm_c_bytes({"activation", "norm"}, false), 2445066240);
}

}  // namespace
}  // namespace foreshard::memory_formulas_test
