// The attention core and the communication of tensor and context parallelism.
#include <cmath>
#include <utility>

#include "core/base/error.h"
#include "core/graph/op_graph_builder.h"

namespace foreshard {

namespace {

// `dims` with the sequence (dimension 1) gathered `times` over or cut into `divided_by` parts.
Dims sequence(Dims dims, std::int64_t times, std::int64_t divided_by) {
  FS_ASSERT(dims.size() >= 2 && dims[1] * times % divided_by == 0);
  dims[1] = dims[1] * times / divided_by;
  return dims;
}

}  // namespace

ops::Attention LayerBuilder::attention_of(const AttentionShape& shape, const SequenceSplit& split) {
  ops::Attention core = shape.variant;
  core.causal = shape.causal, core.heads = shape.heads, core.kv_heads = shape.kv_heads, core.dim = shape.dim;
  core.split = split;
  if (sharding_.dropout > 0) {
    const ops::Dropout drops = dropout_at({shape.batch, shape.heads, shape.queries, shape.keys});
    core.p = drops.p, core.site = drops.site;
  }
  return core;
}

int LayerBuilder::attention(const AttentionShape& shape, const std::vector<int>& qkv, const SequenceSplit& split) {
  if (!sharding_.flash_attention) return unfused_attention(shape, qkv, split);
  const std::int64_t b = shape.batch, s = shape.queries, a = shape.heads, d = shape.dim;
  Operator op = {.name = "attention", .op = attention_of(shape, split), .inputs = qkv, .module = "attention"};
  if (shape.variant.sinks)
    op.weights = {parameter({.name = "sinks", .shape = {a * sharding_.tp}, .split_dim = 0, .init = "normal(0.02)"})};
  op.outputs = {value("context", {b, s, a * shape.values()}), value("lse", {b, a, s}, statistics_type(), false)};
  op.shapes = {{.dims = {b, s, a, d}, .dtype = gemm_type()},
               {.dims = {b, shape.keys, shape.kv_heads, d}, .dtype = gemm_type()}};
  return add(std::move(op)).outputs[0];
}

// Scores, softmax, dropout and P V as separate operators.
int LayerBuilder::unfused_attention(const AttentionShape& shape, const std::vector<int>& qkv, const SequenceSplit& split) {
  const std::int64_t b = shape.batch, s = shape.queries, t = shape.keys, a = shape.heads, d = shape.dim;
  const DType type = at(qkv.front()).dtype;
  Operator product = {.name = "scores",
                      .op = ops::Scores{.causal = shape.causal, .heads = a, .kv_heads = shape.kv_heads, .dim = d},
                      .inputs = qkv,
                      .module = "attention"};
  const int scores = value("scores", {b, a, s, t}, type);
  product.outputs = {scores};
  product.shapes = {{.dims = {b * a, s, t, d}, .dtype = gemm_type()}};
  add(std::move(product));

  const double scale = shape.variant.scale > 0 ? shape.variant.scale : 1.0 / std::sqrt(static_cast<double>(d));
  Operator soft = {.name = "softmax",
                   .op = ops::Softmax{.causal = shape.causal, .scale = scale, .split = split},
                   .inputs = {scores},
                   .module = "attention"};
  const int probabilities = value("probabilities", {b, a, s, t}, type);
  soft.outputs = {probabilities};
  soft.shapes = {{.dims = {b * a * s, t}, .dtype = type}};
  add(std::move(soft));

  keep_tokens(probabilities);
  const int dropped = dropout("attention_dropout", "attention", probabilities, split);
  Operator weighted = {.name = "weighted",
                       .op = ops::WeightedValues{.causal = shape.causal, .heads = a, .kv_heads = shape.kv_heads, .dim = d},
                       .inputs = {dropped, qkv.back()},
                       .module = "attention"};
  weighted.outputs = {value("context", {b, s, a * d}, type)};
  weighted.shapes = {{.dims = {b * a, s, d, t}, .dtype = gemm_type()}};
  return add(std::move(weighted)).outputs[0];
}

Operator& LayerBuilder::communicate(std::string name, Communication what, std::vector<int> inputs, std::vector<int> outputs) {
  return add({.name = std::move(name),
              .communication = what,
              .inputs = std::move(inputs),
              .outputs = std::move(outputs),
              .module = "communication"});
}

int LayerBuilder::column_input(const std::string& name, int x, bool shared) {
  if (!tensor_parallel()) return x;
  const Value in = at(x);
  if (sequence_parallel()) {
    const int full = value(name + "_full", sequence(in.dims, sharding_.tp, 1), in.dtype);
    const auto [forth, back] = std::pair{CollectiveKind::AllGather, CollectiveKind::ReduceScatter};
    communicate(name + "_gather", {.forward = forth, .backward = back, .bytes = bytes(full), .activations = true}, {x}, {full})
        .always_recompute = true;
    return full;
  }
  const Communication sum = {.backward = CollectiveKind::AllReduce, .bytes = in.bytes, .activations = true};
  if (!shared) {
    communicate(name + "_grad", sum, {x}, {});
    return x;
  }
  // Other readers of x have complete gradients: only this reader's share is summed, through an alias of x.
  const int alias = value(name + "_input", in.dims, in.dtype);
  communicate(name + "_grad", sum, {x}, {alias}).always_recompute = true;
  return alias;
}

int LayerBuilder::row_output(const std::string& name, int x) {
  if (!tensor_parallel()) return x;
  const int rows = kept_ < 0 ? x : kept_rows(name, x, true);
  int sum = rows;
  if (sequence_parallel()) {
    const Value whole = at(rows);
    sum = value(name + "_scattered", sequence(whole.dims, 1, sharding_.tp), whole.dtype);
    communicate(name + "_reduce",
                {.forward = CollectiveKind::ReduceScatter,
                 .backward = CollectiveKind::AllGather,
                 .bytes = whole.bytes,
                 .activations = true},
                {rows}, {sum});
  } else {
    communicate(name + "_reduce", {.forward = CollectiveKind::AllReduce, .bytes = bytes(sum), .activations = true}, {sum}, {});
  }
  return kept_ < 0 ? sum : kept_rows(name, sum, false);
}

void LayerBuilder::keep_tokens(int probabilities) {
  if (sharding_.kept_tokens == 0 || !tensor_parallel()) return;
  const Dims maps = at(probabilities).dims;
  const std::int64_t b = maps[0], s = maps[3];
  const std::int64_t parts = sequence_parallel() ? sharding_.tp : 1;  // of the sequence, which keep equally many
  const std::int64_t k =
      parts * static_cast<std::int64_t>(std::ceil(sharding_.kept_tokens * static_cast<double>(s) / static_cast<double>(parts)));
  Operator score = {.name = "token_scores", .op = ops::TokenScores{}, .inputs = {probabilities}, .module = "tokens"};
  const int scores = value("token_scores", {b, s}, statistics_type(), false);
  score.outputs = {scores};
  score.shapes = {{.dims = maps, .dtype = at(probabilities).dtype}};
  add(std::move(score));
  reduce_in_place("token_scores_sum", scores, Combine::Sum);
  Operator keep = {.name = "keep_tokens", .op = ops::KeepTokens{.parts = parts}, .inputs = {scores}, .module = "tokens"};
  kept_ = value("kept_tokens", {b, k}, DType::I64, false);
  keep.outputs = {kept_};
  keep.shapes = {{.dims = {b, s, k}, .dtype = statistics_type()}};
  add(std::move(keep));
}

int LayerBuilder::kept_rows(const std::string& name, int x, bool takes) {
  const Value in = at(x);
  const std::int64_t parts = !takes && sequence_parallel() ? sharding_.tp : 1;
  if (takes) tokens_ = in.dims[1];
  const std::int64_t b = in.dims[0], h = in.dims[2], s = tokens_ / parts, k = at(kept_).dims[1] / parts;
  Operator op = {.name = name + (takes ? "_take" : "_put"), .inputs = {x, kept_}, .module = "tokens"};
  op.op = takes ? Operation{ops::TakeRows{}} : Operation{ops::PutRows{.parts = parts}};
  op.outputs = {value(name + (takes ? "_kept" : "_all"), {b, takes ? k : s, h}, in.dtype)};
  op.shapes = {{.dims = {b, s, k, h}, .dtype = in.dtype}};
  return add(std::move(op)).outputs[0];
}

// Gathered results lie one rank after the other, each with its part of the features of all rows. All ranks continue with the same values,
// so the gradient needs no reduction.
int LayerBuilder::gather_columns(const std::string& name, int x) {
  const Value in = at(x);
  Dims parts = in.dims, joined = in.dims;
  parts.insert(parts.begin(), sharding_.tp), joined.back() *= sharding_.tp;
  const int all = value(name + "_parts", parts, in.dtype);
  communicate(name + "_gather", {.forward = CollectiveKind::AllGather, .bytes = bytes(all)}, {x}, {all});
  Operator join = {.name = name + "_join",
                   .op = ops::HeadParts{.parts = sharding_.tp, .heads = joined.back(), .dim = 1, .join = true},
                   .inputs = {all},
                   .module = "communication"};
  join.outputs = {value(name + "_joined", joined, in.dtype)};
  join.shapes = {{.dims = parts, .dtype = in.dtype}};
  return add(std::move(join)).outputs[0];
}

void LayerBuilder::reduce_in_place(const std::string& name, int x, Combine combine) {
  communicate(name, {.forward = CollectiveKind::AllReduce, .bytes = bytes(x), .combine = combine}, {x}, {});
}

}  // namespace foreshard
