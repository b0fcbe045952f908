// Queries, keys and values of one layer, and the attention over them.
//
//   plain    x -> qkv -> [head_norm] -> [rope] -> [head_norm without weights] -> attention
//   latent   x -> q_down -> q_latent_norm -> q_up -> rope of the last dimensions      -> attention
//            x -> kv_down -> latent -> kv_latent_norm -> kv_up -> kv_heads            -> attention
//                         -> shared part of the keys -> rope -----^
#include <cmath>
#include <utility>

#include "core/base/error.h"
#include "core/graph/op_graph_transformer.h"

namespace foreshard {

namespace {

bool is_latent(const Transformer& m) { return m.attention.latent.key_value_rank > 0; }

ops::Attention variant_of(const Transformer& m, bool local, std::int64_t packed) {
  const AttentionSettings& a = m.attention;
  const LatentAttention& l = a.latent;
  const std::int64_t dim = is_latent(m) ? l.plain_dim + l.rotated_dim : m.head_dim;
  const double usual = 1 / std::sqrt(static_cast<double>(dim));
  ops::Attention variant = {.score_cap = a.score_cap, .sinks = a.sinks};
  if (a.scale > 0 && std::abs(a.scale - usual) > 1e-12 * usual) variant.scale = a.scale;
  if (local) variant.window = a.window, variant.chunk = a.chunk;
  if (packed > 0) variant.chunk = packed;  // positions are relative, so equal sequences in a row are chunks of it
  if (is_latent(m)) variant.value_dim = l.value_dim;
  return variant;
}

AttentionShape shape_of(const LocalTransformer& t, bool local) {
  const Transformer& m = t.model;
  const LatentAttention& l = m.attention.latent;
  return {.batch = t.batch,
          .queries = t.seq,
          .keys = t.seq * t.sharding.cp,
          .heads = t.heads,
          .kv_heads = is_latent(m) ? t.heads : t.kv_heads,  // each head has its own keys
          .dim = is_latent(m) ? l.plain_dim + l.rotated_dim : m.head_dim,
          .causal = m.causal,
          .variant = variant_of(m, local, t.sharding.packed)};
}

int rope(LayerBuilder& layer, const std::string& name, ops::Rope what, int x) {
  const Value in = layer.at(x);
  what.split = layer.split();
  Operator op = {.name = name, .op = what, .inputs = {x}, .module = "rope"};
  op.outputs = {layer.value(in.name + "_rotated", in.dims, in.dtype)};
  op.shapes = {{.dims = in.dims, .dtype = in.dtype}};
  return layer.add(std::move(op)).outputs[0];
}

ops::Rope rope_of(const Transformer& m, bool local) {
  const AttentionSettings& a = m.attention;
  return {.theta = local && a.local_rope_theta > 0 ? a.local_rope_theta : a.rope_theta,
          .rotated = a.rotated_dim < m.head_dim ? a.rotated_dim : 0,
          .scale = a.rope_scale};
}

// Rows that pass norm and rotation together: those of queries, of keys, or of both. After the norm, the values lie beside the keys.
struct HeadRows {
  int rows = -1, values = -1;
  std::int64_t heads = 0, kv_heads = 0;
};

int rotated_and_normed(LayerBuilder& layer, const Transformer& m, const HeadRows& of, bool turns, bool local) {
  const bool first = m.attention.qk_norm != QkNorm::Unweighted;  // the norm before the rotation
  const std::string output = of.kv_heads == 0 ? "q" : of.heads == 0 ? "kv" : "qkv";
  const std::string suffix = of.kv_heads == 0 ? "_q" : of.heads == 0 ? "_k" : "";
  ops::Rope what_turns = rope_of(m, local);
  what_turns.heads = of.heads, what_turns.kv_heads = of.kv_heads, what_turns.dim = m.head_dim;
  const auto norm = [&](int x, const std::string& name) {
    const ops::HeadNorm what = {.over = m.attention.qk_norm,
                                .heads = of.heads,
                                .kv_heads = of.kv_heads,
                                .dim = m.head_dim,
                                .eps = m.block.norm_eps,
                                .around_one = m.block.norms_around_one};
    return layer.head_norm("head_norm" + suffix, what, of.kv_heads > 0 ? std::vector{x, of.values} : std::vector{x}, name);
  };
  if (!first) return norm(rope(layer, "rope" + suffix, what_turns, of.rows), output);
  const int normed = norm(of.rows, output);
  return turns ? rope(layer, "rope" + suffix, what_turns, normed) : normed;
}

std::vector<int> normed_heads(LayerBuilder& layer, const LocalTransformer& t, const Linear& qkv, int input, bool turns,
                              bool local) {
  const std::int64_t q = t.heads * t.model.head_dim, k = t.kv_heads * t.model.head_dim;
  const auto dims = [&](std::int64_t width) { return Dims{t.batch, t.seq, width}; };
  if (t.sharding.cp > 1 && t.sharding.context != ContextKind::AllToAll) {
    const std::vector<int> parts = layer.linear(qkv, input, {dims(q), dims(k), dims(k)}, {"q_rows", "k_rows", "v_rows"});
    const HeadRows queries = {.rows = parts[0], .heads = t.heads};
    const HeadRows keys = {.rows = parts[1], .values = parts[2], .kv_heads = t.kv_heads};
    const int normed = rotated_and_normed(layer, t.model, queries, turns, local);
    return {normed, rotated_and_normed(layer, t.model, keys, turns, local)};
  }
  const std::vector<int> parts = layer.linear(qkv, input, {dims(q + k), dims(k)}, {"qk_rows", "v_rows"});
  const HeadRows both = {.rows = parts[0], .values = parts[1], .heads = t.heads, .kv_heads = t.kv_heads};
  return {rotated_and_normed(layer, t.model, both, turns, local)};
}

std::vector<int> plain_heads(LayerBuilder& layer, const LocalTransformer& t, int input, bool local) {
  const Transformer& m = t.model;
  const std::int64_t d = m.head_dim, q_rows = m.heads * d, kv_rows = m.kv_heads * d;
  const Linear qkv = {.name = "qkv",
                      .module = "qkv",
                      .in = m.hidden,
                      .out = q_rows + 2 * kv_rows,
                      .split = 0,
                      .bias = m.qkv_bias,
                      .block_rows = {q_rows, kv_rows, kv_rows}};
  const bool turns = m.positions == PositionKind::Rope && (local || !m.attention.full_unrotated);
  if (m.attention.qk_norm != QkNorm::None && (turns || m.attention.qk_norm != QkNorm::Unweighted))
    return normed_heads(layer, t, qkv, input, turns, local);
  const std::int64_t q = t.heads * d, kv = 2 * t.kv_heads * d;
  ops::Rope what = rope_of(m, local);
  what.dim = d;
  const auto rotate = [&](const char* name, std::int64_t heads, std::int64_t kv_heads, int x) {
    what.heads = heads, what.kv_heads = kv_heads;
    return turns ? rope(layer, name, what, x) : x;
  };
  if (t.sharding.cp > 1 && t.sharding.context != ContextKind::AllToAll) {  // keys are sent between ranks, queries are not
    const std::vector<int> parts = layer.linear(qkv, input, {{t.batch, t.seq, q}, {t.batch, t.seq, kv}}, {"q", "kv"});
    const int queries = rotate("rope_q", t.heads, 0, parts[0]);
    return {queries, rotate("rope_k", 0, t.kv_heads, parts[1])};
  }
  const std::vector<int> all = layer.linear(qkv, input, std::vector<Dims>{{t.batch, t.seq, q + kv}}, {"qkv"});
  return {rotate("rope", t.heads, t.kv_heads, all[0])};
}

// The linear layers that make latents are not cut: every tensor-parallel rank computes them for its tokens, and latents are gathered
// instead of tokens.
int latent_queries(LayerBuilder& layer, const LocalTransformer& t, int x) {
  const Transformer& m = t.model;
  const LatentAttention& l = m.attention.latent;
  Linear up = {.name = "q_up", .module = "qkv", .in = m.hidden, .out = m.heads * (l.plain_dim + l.rotated_dim), .split = 0};
  int input = -1;
  if (l.query_rank > 0) {
    const Linear down = {.name = "q_down", .module = "qkv", .in = m.hidden, .out = l.query_rank, .bias = m.qkv_bias};
    const int latent = layer.linear(down, x, {t.batch, t.part, l.query_rank});
    input = layer.column_input("q_up", layer.norm("q_latent_norm", m, latent), false);
    up.in = l.query_rank;
  } else {
    input = layer.column_input("q_up", x, true);
  }
  const std::int64_t width = t.heads * (l.plain_dim + l.rotated_dim);
  const int q = layer.linear(up, input, std::vector<Dims>{{t.batch, t.seq, width}}, {"q"}).front();
  const ops::Rope last = {.heads = t.heads,
                          .dim = l.plain_dim + l.rotated_dim,
                          .theta = m.attention.rope_theta,
                          .rotated = l.rotated_dim,
                          .last = true};
  return rope(layer, "rope_q", last, q);
}

int latent_keys(LayerBuilder& layer, const LocalTransformer& t, int x) {
  const Transformer& m = t.model;
  const LatentAttention& l = m.attention.latent;
  const Linear down = {
      .name = "kv_down", .module = "qkv", .in = m.hidden, .out = l.key_value_rank + l.rotated_dim, .bias = m.qkv_bias};
  const std::vector<int> parts =
      layer.linear(down, x, {{t.batch, t.part, l.key_value_rank}, {t.batch, t.part, l.rotated_dim}}, {"kv_latent", "k_shared"});
  const int latent = layer.column_input("kv_up", layer.norm("kv_latent_norm", m, parts[0]), false);
  int shared = layer.column_input("k_shared", parts[1], false);
  const Linear up = {.name = "kv_up",
                     .module = "qkv",
                     .in = l.key_value_rank,
                     .out = m.heads * (l.plain_dim + l.value_dim),
                     .split = 0,
                     .block_rows = {m.heads * l.plain_dim, m.heads * l.value_dim}};
  const int heads = layer.linear(up, latent, {t.batch, t.seq, t.heads * (l.plain_dim + l.value_dim)});
  shared = rope(layer, "rope_k", {.kv_heads = 1, .dim = l.rotated_dim, .theta = m.attention.rope_theta}, shared);
  return layer.latent_heads({.heads = t.heads, .plain = l.plain_dim, .rotated = l.rotated_dim, .value = l.value_dim}, heads,
                            shared);
}

}  // namespace

std::int64_t context_width(const Transformer& m) {
  return m.heads * (is_latent(m) ? m.attention.latent.value_dim : m.head_dim);
}

int attend(LayerBuilder& layer, const LocalTransformer& t, int x, bool local, bool shared) {
  const AttentionShape shape = shape_of(t, local);
  if (!is_latent(t.model))
    return layer.context_attention(shape, plain_heads(layer, t, layer.column_input("qkv", x, shared), local));
  const int queries = latent_queries(layer, t, x);
  return layer.context_attention(shape, {queries, latent_keys(layer, t, x)});
}

void check_attention(const Transformer& m, const Sharding& s) {
  const AttentionSettings& a = m.attention;
  const bool masks = a.window > 0 || a.chunk > 0;
  if (masks && !m.causal) throw Error("windows and chunks of attention need a causal model");
  if (!s.flash_attention && needs_fused_attention(m))
    throw Error("windows, chunks, sinks, capped scores and latent attention need one attention kernel: --attention flash");
  if (a.qk_norm == QkNorm::AllHeads && s.tp > 1)
    throw Error("norms over all query heads at once need all of them on each rank: --tp 1");
  if (a.qk_norm == QkNorm::PerHead && s.tp > 1 && !s.sequence_parallel)
    throw Error("tensor-parallel ranks sum the gradients of norms of queries and keys only with --sequence-parallel");
  if (s.cp == 1) return;
  if (a.sinks && s.context != ContextKind::AllGather)
    throw Error("attention sinks need all keys of a head on each rank: --context all-gather");
  if (is_latent(m) && s.context == ContextKind::AllToAll)
    throw Error("latent attention does not deal out heads over context-parallel ranks: --context all-gather or ring");
}

}  // namespace foreshard
