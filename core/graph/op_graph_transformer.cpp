// One transformer layer as Megatron shards it (Shoeybi et al. 2019; sequence parallelism: Korthikanti et al. 2022).
//
//   pre-norm                                         post-norm (BERT)
//   x -> norm1 -> [gather] qkv -> attention          x -> [gather] qkv -> attention
//     -> projection -> [reduce] -> + x = r             -> projection -> [reduce] -> + x -> norm1 = r
//   r -> norm2 -> [gather] fc1 -> activation         r -> [gather] fc1 -> activation
//     -> fc2 -> [reduce] -> + r                        -> fc2 -> [reduce] -> + r -> norm2
#include <cmath>
#include <utility>

#include "core/base/error.h"
#include "core/graph/op_graph_transformer.h"

namespace foreshard {

namespace {

void require(bool holds, const std::string& field, std::int64_t found, const std::string& expected) {
  if (!holds) throw Error("", field, std::to_string(found), expected);
}

// "tp 3 does not divide the 64 attention heads"
void require_divides(const std::string& degree, std::int64_t divisor, std::int64_t number, const std::string& of) {
  if (number % divisor != 0) throw Error(degree + " does not divide the " + std::to_string(number) + " " + of);
}

// Causal work is balanced by giving every rank one early and one late chunk; where heads are dealt out it is even as it is.
int chunks_of(const Transformer& m, const Sharding& s) {
  return s.cp > 1 && m.causal && s.context != ContextKind::AllToAll ? 2 : 1;
}

// What a model has that no operator computes; empty: nothing.
std::string without_operator(const Transformer& m) {
  const AttentionSettings& a = m.attention;
  const double usual_scale = 1 / std::sqrt(static_cast<double>(m.head_dim));
  const std::pair<bool, const char*> features[] = {
      {m.block.experts.count > 0, "mixtures of experts"},
      {a.latent.key_value_rank > 0, "latent attention"},
      {m.block.mtp_modules > 0, "multi-token prediction"},
      {a.qk_norm != QkNorm::None, "norms of queries and keys"},
      {a.window > 0, "attention windows"},
      {a.chunk > 0, "attention chunks"},
      {a.sinks, "attention sinks"},
      {a.score_cap > 0 || m.block.scales.logit_cap > 0, "capped scores and logits"},
      {a.scale > 0 && std::abs(a.scale - usual_scale) > 1e-12 * usual_scale, "a scale of scores of its own"},
      {a.rotated_dim > 0, "rotary positions of a part of each head"},
      {!m.block.input_norms || m.block.branch_norms, "norms behind attention and MLP"},
      {m.block.norms_around_one, "norms with weights around one"},
      {m.block.scales != ValueScales{}, "multipliers of embeddings, residuals or logits"},
      {m.activation == ActivationKind::GeGlu, "gated GELU"},
      {m.activation == ActivationKind::ClampedSwiGlu, "clamped SwiGLU"}};
  for (const auto& [there, what] : features)
    if (there) return what;
  return "";
}

void check_cuts(const Transformer& m, const Sharding& s) {
  if (const std::string what = without_operator(m); !what.empty())
    throw Error("the model has " + what + ", for which there is no operator yet");
  require(s.micro_batch >= 1, "micro_batch", s.micro_batch, "at least 1");
  require(s.seq >= 1, "seq", s.seq, "at least 1");
  require(s.tp >= 1, "tp", s.tp, "at least 1");
  require(s.cp >= 1, "cp", s.cp, "at least 1");
  require(m.positions != PositionKind::Learned || s.seq <= m.max_positions, "seq", s.seq,
          "at most the model's " + std::to_string(m.max_positions) + " positions");
  const std::string tp = "tp " + std::to_string(s.tp);
  require_divides(tp, s.tp, m.heads, "attention heads");
  require_divides(tp, s.tp, m.kv_heads, "key-value heads");
  require_divides(tp, s.tp, m.ffn_hidden, "columns of the feed-forward layer (ffn_hidden)");
  const bool heads = s.cp > 1 && s.context == ContextKind::AllToAll;
  const std::int64_t chunks = std::int64_t{s.cp} * chunks_of(m, s);
  const std::string tokens = "tokens of a sequence";
  require_divides((chunks > s.cp ? "2 x cp = " : "cp ") + std::to_string(chunks), chunks, s.seq, tokens);
  if (heads) {
    const std::string both = "all-to-all: tp x cp = " + std::to_string(s.tp * s.cp);
    require_divides(both, std::int64_t{s.tp} * s.cp, m.heads, "attention heads");
    require_divides(both, std::int64_t{s.tp} * s.cp, m.kv_heads, "key-value heads");
  }
  if (s.context == ContextKind::Ring && s.cp > 1 && !s.flash_attention)
    throw Error(
        "a ring of keys and values needs an attention kernel that merges its parts: --attention flash, or --context "
        "all-gather");
  if (s.sequence_parallel)
    require_divides("sequence parallelism: " + (s.cp > 1 ? "tp x cp = " + std::to_string(s.cp * s.tp) : tp), s.cp * s.tp, s.seq,
                    tokens);
  require(!(m.pooler && s.sequence_parallel && s.tp > 1), "sequence_parallel", s.tp,
          "off, because the pooler reads the first token, which lies on one rank only");
  require(!(m.pooler && s.cp > 1), "cp", s.cp, "1, because the pooler reads the first token, which lies on one rank only");
}

std::string residual_init(const Transformer& m) {
  // GPT-2: the layers that write to the residual stream start smaller by sqrt(2 L).
  return "normal(" + number(0.02 / std::sqrt(2.0 * std::max(1, m.layers))) + ")";
}

int attention_block(LayerBuilder& layer, const LocalTransformer& t, int x, int skip) {
  const Transformer& m = t.model;
  const std::int64_t d = m.head_dim, q_rows = m.heads * d, kv_rows = m.kv_heads * d;
  const bool post_norm = m.post_norm;
  const int input = layer.column_input("qkv", x, post_norm);
  const Linear qkv = {.name = "qkv",
                      .module = "qkv",
                      .in = m.hidden,
                      .out = q_rows + 2 * kv_rows,
                      .split = 0,
                      .bias = m.qkv_bias,
                      .block_rows = {q_rows, kv_rows, kv_rows}};
  const AttentionShape shape = {.batch = t.batch,
                                .queries = t.seq,
                                .keys = t.seq * t.sharding.cp,
                                .heads = t.heads,
                                .kv_heads = t.kv_heads,
                                .dim = d,
                                .causal = m.causal};
  const std::int64_t q = t.heads * d, kv = 2 * t.kv_heads * d;
  std::vector<int> parts;
  if (t.sharding.cp > 1 && t.sharding.context != ContextKind::AllToAll) {  // keys go between ranks, queries stay
    parts = layer.linear(qkv, input, {{t.batch, t.seq, q}, {t.batch, t.seq, kv}}, {"q", "kv"});
  } else {
    parts = layer.linear(qkv, input, std::vector<Dims>{{t.batch, t.seq, q + kv}}, {"qkv"});
  }
  if (m.positions == PositionKind::Rope) {
    for (int& part : parts) part = layer.rope(shape, m.attention.rope_theta, part);
  }
  const int context = layer.context_attention(shape, parts);
  int out = layer.linear(
      {.name = "projection", .module = "projection", .in = q_rows, .out = m.hidden, .split = 1, .init = residual_init(m)},
      context, {t.batch, t.seq, m.hidden});
  out = layer.row_output("projection", out);
  return layer.residual("residual1", out, skip, m.projection_bias, "projection.bias");
}

int mlp_block(LayerBuilder& layer, const LocalTransformer& t, int x, int skip) {
  const Transformer& m = t.model;
  const bool gated = is_gated(m.activation);
  const std::int64_t f = m.ffn_hidden, local = f / t.sharding.tp;
  const int input = layer.column_input("fc1", x, m.post_norm);
  const Linear fc1 = {.name = "fc1",
                      .module = "mlp",
                      .in = m.hidden,
                      .out = gated ? 2 * f : f,
                      .split = 0,
                      .bias = m.mlp_bias,
                      .block_rows = gated ? Dims{f, f} : Dims{}};
  int y = layer.linear(fc1, input, {t.batch, t.seq, gated ? 2 * local : local});
  y = layer.activation("activation", m.activation, y, {t.batch, t.seq, local});
  y = layer.linear({.name = "fc2", .module = "mlp", .in = f, .out = m.hidden, .split = 1, .init = residual_init(m)}, y,
                   {t.batch, t.seq, m.hidden});
  y = layer.row_output("fc2", y);
  return layer.residual("residual2", y, skip, m.mlp_bias, "fc2.bias");
}

}  // namespace

std::int64_t padded_vocab(const Transformer& model, std::int64_t multiple) { return round_up(model.vocab, multiple); }

LocalTransformer local_transformer(const Transformer& model, const Sharding& sharding) {
  check_cuts(model, sharding);
  LocalTransformer t = {.model = model, .sharding = sharding, .batch = sharding.micro_batch};
  t.split = {.ranks = sharding.cp, .chunks = chunks_of(model, sharding)};
  t.seq = sharding.seq / sharding.cp;
  t.part = sharding.sequence_parallel ? t.seq / sharding.tp : t.seq;
  t.heads = model.heads / sharding.tp;
  t.kv_heads = model.kv_heads / sharding.tp;
  t.vocab = padded_vocab(model, sharding.vocab_multiple * sharding.tp);
  return t;
}

LayerGraph transformer_layer(const LocalTransformer& t) {
  const Transformer& m = t.model;
  LayerBuilder layer(m.causal ? "decoder" : "encoder", t.sharding, t.split);
  const int x = layer.value("x", {t.batch, t.part, m.hidden});
  if (m.post_norm) {
    const int attended = layer.norm("norm1", m.norm, m.block.norm_eps, attention_block(layer, t, x, x));
    return layer.finish(x, layer.norm("norm2", m.norm, m.block.norm_eps, mlp_block(layer, t, attended, attended)));
  }
  const int attended = attention_block(layer, t, layer.norm("norm1", m.norm, m.block.norm_eps, x), x);
  return layer.finish(x, mlp_block(layer, t, layer.norm("norm2", m.norm, m.block.norm_eps, attended), attended));
}

}  // namespace foreshard
