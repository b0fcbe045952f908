// One transformer layer as Megatron shards it (Shoeybi et al. 2019; sequence parallelism: Korthikanti et al. 2022).
//
//   pre-norm                                         post-norm (BERT)
//   x -> norm1 -> [gather] qkv -> attention          x -> [gather] qkv -> attention
//     -> projection -> [reduce] -> + x = r             -> projection -> [reduce] -> + x -> norm1 = r
//   r -> norm2 -> [gather] fc1 -> activation         r -> [gather] fc1 -> activation
//     -> fc2 -> [reduce] -> + r                        -> fc2 -> [reduce] -> + r -> norm2
// Norms of branches (in OLMo 2 instead of pre-norms, in Gemma in addition) and multipliers come before the residual sum.
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

// Causal work is balanced by giving every rank one early and one late chunk; with all-to-all of heads it is balanced anyway.
int chunks_of(const Transformer& m, const Sharding& s) {
  return s.cp > 1 && m.causal && s.context != ContextKind::AllToAll ? 2 : 1;
}

void check_cuts(const Transformer& m, const Sharding& s) {
  check_attention(m, s);
  check_experts(m, s);
  if (m.block.mtp_modules > 0 && (m.post_norm || m.pooler || m.mlm_head || m.positions == PositionKind::Learned))
    throw Error("multi-token prediction is for decoders with norms before their blocks and rotary positions");
  const bool branches = m.block.branch_norms || m.block.scales.residual != 1;
  if (branches && (m.projection_bias || m.mlp_bias))
    throw Error("norms and multipliers behind attention and MLP need products without biases before them");
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

// What a branch adds to the residual stream: its result after an optional norm and an optional factor.
int branch_end(LayerBuilder& layer, const Transformer& m, const std::string& number, int x) {
  if (m.block.branch_norms) x = layer.norm("branch_norm" + number, m, x);
  return layer.scale("branch_scale" + number, m.block.scales.residual, x);
}

int attention_block(LayerBuilder& layer, const LocalTransformer& t, int x, int skip, bool local) {
  const Transformer& m = t.model;
  const int context = attend(layer, t, x, local, m.post_norm || !m.block.input_norms);
  int out = layer.linear({.name = "projection",
                          .module = "projection",
                          .in = context_width(m),
                          .out = m.hidden,
                          .split = 1,
                          .init = residual_init(m)},
                         context, {t.batch, t.seq, m.hidden});
  out = branch_end(layer, m, "1", layer.row_output("projection", out));
  return layer.residual("residual1", out, skip, m.projection_bias, "projection.bias");
}

// A dense MLP of `f` columns. `shared`: other operators read x, too.
int mlp(LayerBuilder& layer, const LocalTransformer& t, const std::string& prefix, std::int64_t f, int x, bool shared) {
  const Transformer& m = t.model;
  const bool gated = is_gated(m.activation);
  const std::int64_t local = f / t.sharding.tp;
  const int input = layer.column_input(prefix + "fc1", x, shared);
  const Linear fc1 = {.name = prefix + "fc1",
                      .module = "mlp",
                      .in = m.hidden,
                      .out = gated ? 2 * f : f,
                      .split = 0,
                      .bias = m.mlp_bias,
                      .block_rows = gated ? Dims{f, f} : Dims{}};
  int y = layer.linear(fc1, input, {t.batch, t.seq, gated ? 2 * local : local});
  y = layer.activation(prefix + "activation", m.activation, y, {t.batch, t.seq, local});
  y = layer.linear({.name = prefix + "fc2", .module = "mlp", .in = f, .out = m.hidden, .split = 1, .init = residual_init(m)}, y,
                   {t.batch, t.seq, m.hidden});
  return layer.row_output(prefix + "fc2", y);
}

int mlp_block(LayerBuilder& layer, const LocalTransformer& t, int x, int skip, const LayerVariant& variant) {
  const Transformer& m = t.model;
  int y = -1;
  if (variant.experts) {
    int shared = -1;
    y = foreshard::experts(layer, t, mixture_of(t, residual_init(m), variant.mixture), x, [&] {
      if (const std::int64_t width = m.block.experts.shared_width; width > 0) shared = mlp(layer, t, "shared_", width, x, true);
    });
    if (shared >= 0) y = layer.sum("experts_sum", shared, y);
  } else {
    y = mlp(layer, t, "", m.ffn_hidden, x, m.post_norm || !m.block.input_norms);
  }
  y = branch_end(layer, m, "2", y);
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

int transformer_block(LayerBuilder& layer, const LocalTransformer& t, int x, const LayerVariant& variant) {
  const Transformer& m = t.model;
  const auto attended_by = [&](int input) { return attention_block(layer, t, input, x, variant.local); };
  if (m.post_norm) {
    const int attended = layer.norm("norm1", m, attended_by(x));
    return layer.norm("norm2", m, mlp_block(layer, t, attended, attended, {}));
  }
  const auto read = [&](const char* name, int value) { return m.block.input_norms ? layer.norm(name, m, value) : value; };
  const int attended = attended_by(read("norm1", x));
  return mlp_block(layer, t, read("norm2", attended), attended, variant);
}

LayerGraph transformer_layer(const LocalTransformer& t, const std::string& kind, const LayerVariant& variant) {
  LayerBuilder layer(kind, t.sharding, t.split);
  const int x = layer.value("x", {t.batch, t.part, t.model.hidden}, {}, !variant.lowest);
  return layer.finish(x, transformer_block(layer, t, x, variant));
}

}  // namespace foreshard
