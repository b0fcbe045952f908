#include "core/graph/transformer_flops.h"

#include <algorithm>

#include "core/base/units.h"
#include "core/graph/op_graph_transformer.h"
#include "core/op/attention.h"

namespace foreshard {

namespace {

// The number of attention weights of a layer by which one token is multiplied. Numbers stay below 2^53, so doubles are exact.
double attention_weights(const Transformer& m) {
  const auto h = static_cast<double>(m.hidden), heads = static_cast<double>(m.heads);
  const LatentAttention& l = m.attention.latent;
  if (l.key_value_rank > 0) {
    const auto rq = static_cast<double>(l.query_rank), rkv = static_cast<double>(l.key_value_rank);
    const auto dn = static_cast<double>(l.plain_dim), dr = static_cast<double>(l.rotated_dim),
               dv = static_cast<double>(l.value_dim);
    const double queries = rq > 0 ? h * rq + rq * heads * (dn + dr) : h * heads * (dn + dr);
    return queries + h * (rkv + dr) + rkv * heads * (dn + dv) + heads * dv * h;
  }
  const double query = static_cast<double>(m.heads * m.head_dim), kv = static_cast<double>(m.kv_heads * m.head_dim);
  return h * (query + 2.0 * kv) + query * h;
}

double mlp_weights(const Transformer& m, int layer) {
  const auto h = static_cast<double>(m.hidden), products = is_gated(m.activation) ? 3.0 : 2.0;
  if (!has_experts(m, layer)) return h * static_cast<double>(m.ffn_hidden) * products;
  const Experts& e = m.block.experts;
  return h * static_cast<double>(e.count) + products * h * static_cast<double>(e.chosen * e.width + e.shared_width);
}

// Elements of a query head plus those of a value head, over all heads: 2 a d, or a (dn + dr + dv).
double core_width(const Transformer& m) {
  const LatentAttention& l = m.attention.latent;
  if (l.key_value_rank > 0) return static_cast<double>(m.heads * (l.plain_dim + l.rotated_dim + l.value_dim));
  return 2.0 * static_cast<double>(m.heads * m.head_dim);
}

}  // namespace

double attention_pairs(const Transformer& t, int layer, std::int64_t seq) {
  const bool local = attends_locally(t, layer);
  return ops::pairs_in_mask(seq, t.causal, local ? t.attention.window : 0, local ? t.attention.chunk : 0);
}

// 6 FLOPs per multiplied parameter and token (Kaplan et al. 2020), and 12 L (a d) s^2 for the scores and their product
// with the values. For GPT: 72 s L h^2 (1 + s / 6h + V / 12 L h) (Narayanan et al. 2021, without recomputation). A module for
// multi-token prediction is one more layer, 2 h^2 weights and another product with the head (DeepSeek-V3, arXiv:2412.19437, 2.2).
TransformerFlops transformer_flops(const Transformer& m, std::int64_t seq, std::int64_t vocab_multiple) {
  const auto s = static_cast<double>(seq), h = static_cast<double>(m.hidden),
             modules = static_cast<double>(m.block.mtp_modules);
  const auto vocab = static_cast<double>(padded_vocab(m, vocab_multiple));
  double weights = 0, pairs = 0;
  for (int i = 0; i < m.layers; ++i) {
    weights += attention_weights(m) + mlp_weights(m, i);
    pairs += attention_pairs(m, i, seq);
  }
  const double layers = static_cast<double>(m.layers) + modules;
  weights += modules * (attention_weights(m) + mlp_weights(m, m.layers - 1) + 2.0 * h * h + h * vocab);
  pairs += modules * attention_pairs(m, m.layers - 1, seq);
  const double head = h * vocab + (m.mlm_head ? h * h : 0.0);
  const double first_token = m.pooler ? h * h + 2.0 * h : 0.0;
  return {.products = {6.0 * s * (weights + head) + 6.0 * first_token},
          .core = {6.0 * layers * core_width(m) * s * s},
          .core_in_mask = {6.0 * core_width(m) * pairs}};
}

}  // namespace foreshard
