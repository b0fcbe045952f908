// Attention of today's families in the operator graph: parameters, FLOPs and kept bytes against closed forms.
#include <gtest/gtest.h>

#include <cstdint>
#include <numeric>
#include <string>

#include "core/graph/op_graph.h"
#include "core/graph/op_graph_saved.h"
#include "core/model/model.h"

namespace foreshard::op_graph_heads_test {
namespace {

const Transformer& transformer(const Model& model) { return std::get<Transformer>(model.shape); }

// A shipped model with dense MLPs in place of its experts: its attention is what is looked at.
Model dense(const std::string& name) {
  Model model = load_model(name);
  auto& t = std::get<Transformer>(model.shape);
  t.block.experts = {}, t.block.mtp_modules = 0;
  return model;
}

const char* const kModels[] = {"qwen3-0.6b",       "qwen3-8b",  "qwen3-32b",  "gemma-2-2b",    "gemma-2-27b",    "gemma-3-1b",
                               "gemma-3-27b",      "olmo-2-7b", "olmo-2-32b", "phi-3-mini-4k", "granite-3.3-8b", "deepseek-v3",
                               "deepseek-v2-lite", "kimi-k2",   "glm-4.5",    "gpt-oss-120b",  "llama-4-scout",  "minimax-m2"};

bool cut_by_tensor_ranks(const Transformer& t) { return t.attention.qk_norm != QkNorm::AllHeads && t.kv_heads % 2 == 0; }

// On one rank, and summed over two: the products that make latents are not cut, but each rank has them for its part of the tokens.
TEST(OpGraphHeads, ParametersAndFlopsAreThoseOfTheModel) {
  for (const char* name : kModels) {
    const Model model = dense(name);
    for (const int tp : {1, 2}) {
      if (tp > 1 && !cut_by_tensor_ranks(transformer(model))) continue;
      const OpGraph graph = build_op_graph(model, {.seq = 4096, .tp = tp, .sequence_parallel = tp > 1});
      std::int64_t parameters = 0;
      double flops = 0;
      for (const auto& layer : graph.layers) {
        const LayerGraph& kind = graph.kinds[static_cast<std::size_t>(layer.kind)];
        for (const Parameter& p : kind.parameters)
          if (!p.tied) parameters += std::accumulate(p.shape.begin(), p.shape.end(), std::int64_t{1}, std::multiplies<>());
        for (const Operator& op : kind.operators)
          flops += op.forward.flops.value + op.input_grad.flops.value + op.weight_grad.flops.value;
      }
      EXPECT_EQ(parameters, parameter_count(model, tp)) << name;
      EXPECT_NEAR(tp * flops / model_flops_per_sample(model, 4096, tp).value, 1, 1e-12) << name << " tp " << tp;
    }
  }
}

std::int64_t bytes_per_token(const Model& model) {
  const OpGraph graph = build_op_graph(model, {.seq = 4096});
  const LayerGraph& layer = graph.kinds[1];
  return kept_bytes(layer, retention(layer)).value / 4096;
}

// bf16, flash, no recompute. Grouped queries: 4 h + 4 a d + 4 g d + 4 a [+ 2 a d + 2 g d, inputs of norms of heads]; latent: 4 h + 4 rq +
// 2 rkv + 2 rkv + 4 a (dn + dr) + 4 a dv + 4 a, for the part of the keys that turns is not kept; 2 h for each norm behind a branch (and
// 2 h less for each norm that is not before it); the MLP 4 h + 6 f.
TEST(OpGraphHeads, BytesOfALayerInClosedForm) {
  for (const char* name : kModels) {
    const Model model = dense(name);
    const Transformer& t = transformer(model);
    const LatentAttention& l = t.attention.latent;
    const std::int64_t h = t.hidden, a = t.heads, q = a * t.head_dim, k = t.kv_heads * t.head_dim;
    std::int64_t bytes = 4 * h + 4 * a + 4 * h + 6 * t.ffn_hidden;
    if (l.key_value_rank > 0)
      bytes += 4 * l.query_rank + 4 * l.key_value_rank + 4 * a * (l.plain_dim + l.rotated_dim) + 4 * a * l.value_dim;
    else
      bytes += 4 * q + 4 * k + (t.attention.qk_norm == QkNorm::None ? 0 : 2 * q + 2 * k);
    if (t.block.branch_norms) bytes += 4 * h;
    if (!t.block.input_norms) bytes -= 4 * h;
    EXPECT_EQ(bytes_per_token(model), bytes) << name;
  }
}

// The published sums of attention (modern models, 2.2), without the 2 dr = 128 bytes of DeepSeek's key part that turns.
TEST(OpGraphHeads, BytesOfPublishedModels) {
  const struct {
    const char* name;
    std::int64_t attention;
  } rows[] = {{"deepseek-v3", 201344 - 128},
              {"qwen3-30b-a3b", 35968},
              {"qwen3-235b-a22b", 68864},
              {"mixtral-8x7b", 36992},
              {"gpt-oss-120b", 30208}};
  for (const auto& row : rows) {
    const Model model = dense(row.name);
    const Transformer& t = transformer(model);
    EXPECT_EQ(bytes_per_token(model) - 4 * t.hidden - 6 * t.ffn_hidden, row.attention) << row.name;
  }
}

const Operator& named(const LayerGraph& layer, const std::string& name) {
  for (const Operator& op : layer.operators)
    if (op.name == name) return op;
  ADD_FAILURE() << "no operator " << name;
  return layer.operators.front();
}

TEST(OpGraphHeads, LayersThatAttendLocallyAreAKindOfTheirOwn) {
  const OpGraph graph = build_op_graph(load_model("gemma-3-1b"), {.seq = 4096});
  ASSERT_EQ(graph.kinds.size(), 4u);
  EXPECT_EQ(graph.kinds[1].kind, "decoder");
  EXPECT_EQ(graph.kinds[2].kind, "full_decoder");
  for (int i = 0; i < 26; ++i) {
    const LayerGraph& layer = graph.kinds[static_cast<std::size_t>(graph.layers[static_cast<std::size_t>(i + 1)].kind)];
    const bool local = (i + 1) % 6 != 0;
    EXPECT_EQ(std::get<ops::Attention>(named(layer, "attention").op).window, local ? 512 : 0) << i;
    EXPECT_EQ(std::get<ops::Rope>(named(layer, "rope").op).theta, local ? 1e4 : 1e6) << i;
  }
  EXPECT_EQ(graph.layers.back().kind, 3);
  EXPECT_EQ(build_op_graph(load_model("phi-3-mini-4k"), {.seq = 4096}).kinds.size(), 3u);  // all have the window
}

// Every fourth layer of Llama 4 sees all, without positions and without norms of heads.
TEST(OpGraphHeads, FullLayersOfLlama4HaveNoPositions) {
  const OpGraph graph = build_op_graph(dense("llama-4-scout"), {.seq = 16384});
  const auto has = [&](int layer, const std::string& name) {
    for (const Operator& op :
         graph.kinds[static_cast<std::size_t>(graph.layers[static_cast<std::size_t>(layer + 1)].kind)].operators)
      if (op.name == name) return true;
    return false;
  };
  for (int i = 0; i < 48; ++i) {
    EXPECT_EQ(has(i, "rope"), (i + 1) % 4 != 0) << i;
    EXPECT_EQ(has(i, "head_norm"), (i + 1) % 4 != 0) << i;
  }
}

}  // namespace
}  // namespace foreshard::op_graph_heads_test
