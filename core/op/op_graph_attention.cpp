// The attention core and the communication of tensor and context parallelism.
#include <cmath>
#include <utility>

#include "core/base/error.h"
#include "core/op/op_graph_builder.h"

namespace foreshard {

namespace {

std::string attention_attributes(const AttentionShape& shape) {
  return std::string(shape.causal ? "causal " : "") + "heads=" + std::to_string(shape.heads) +
         " kv=" + std::to_string(shape.kv_heads) + " dim=" + std::to_string(shape.dim);
}

// `dims` with the sequence (dimension 1) gathered `times` over or cut into `divided_by` parts.
Dims sequence(Dims dims, std::int64_t times, std::int64_t divided_by) {
  FS_ASSERT(dims.size() >= 2 && dims[1] * times % divided_by == 0);
  dims[1] = dims[1] * times / divided_by;
  return dims;
}

}  // namespace

int LayerBuilder::attention(const AttentionShape& shape, const std::vector<int>& qkv) {
  if (!sharding_.flash_attention) return unfused_attention(shape, qkv);
  const std::int64_t b = shape.batch, s = shape.queries, a = shape.heads, d = shape.dim;
  Operator op = {.name = "attention", .op = Op::Attention, .inputs = qkv, .module = "attention"};
  op.outputs = {value("context", {b, s, a * d}), value("lse", {b, a, s}, statistics_type(), false)};
  op.saved = qkv;
  op.saved.insert(op.saved.end(), op.outputs.begin(), op.outputs.end());
  op.shapes = {{.dims = {b, s, a, d}, .dtype = gemm_type()},
               {.dims = {b, shape.keys, shape.kv_heads, d}, .dtype = gemm_type()}};
  op.attributes = attention_attributes(shape);
  if (sharding_.cp > 1) op.attributes += " cp=" + std::to_string(sharding_.cp);
  if (sharding_.dropout > 0) op.attributes += " " + dropout_attributes({b, a, s, shape.keys});
  const double score =
      2.0 * static_cast<double>(b * a) * static_cast<double>(s) * static_cast<double>(shape.keys) * static_cast<double>(d);
  Bytes in = {};
  for (const int v : qkv) in += bytes(v);
  const Bytes out = bytes(op.outputs[0]), lse = bytes(op.outputs[1]);
  op.forward = {{2 * score}, in + out + lse};
  op.input_grad = {{4 * score}, 2 * in + 2 * out + lse};  // the scores computed again are not counted
  return add(std::move(op)).outputs[0];
}

// Scores, softmax, dropout and P V as separate operators: the 5 a s^2 b bytes of Korthikanti et al. (memory.md section
// 3).
int LayerBuilder::unfused_attention(const AttentionShape& shape, const std::vector<int>& qkv) {
  const std::int64_t b = shape.batch, s = shape.queries, t = shape.keys, a = shape.heads, d = shape.dim;
  const int query = qkv.front(), key = qkv.back();
  const DType type = at(query).dtype;
  const Bytes q = matrix(b * a * s, d, type), k = matrix(b * shape.kv_heads * t, d, type);
  const Flops flops = {2.0 * static_cast<double>(b * a) * static_cast<double>(s) * static_cast<double>(t) *
                       static_cast<double>(d)};
  const std::string heads = attention_attributes(shape);

  Operator product = {.name = "scores", .op = Op::MatMul, .inputs = qkv, .saved = qkv, .module = "attention"};
  const int scores = value("scores", {b, a, s, t}, type);
  const Bytes map = bytes(scores);
  product.outputs = {scores};
  product.shapes = {{.dims = {b * a, s, t, d}, .dtype = gemm_type()}};
  product.attributes = "scores " + heads;
  product.forward = {flops, q + k + map};
  product.input_grad = {2 * flops, 2 * map + 2 * q + 2 * k};
  add(std::move(product));

  Operator soft = {.name = "softmax", .op = Op::Softmax, .inputs = {scores}, .module = "attention"};
  const int probabilities = value("probabilities", {b, a, s, t}, type);
  soft.outputs = soft.saved = {probabilities};
  soft.shapes = {{.dims = {b * a * s, t}, .dtype = type}};
  soft.attributes = shape.causal ? "causal scale=" : "scale=";
  soft.attributes += number(1.0 / std::sqrt(static_cast<double>(d)));
  if (sharding_.cp > 1) soft.attributes += " cp=" + std::to_string(sharding_.cp);
  soft.forward.traffic = 2 * map;
  soft.input_grad.traffic = 3 * map;
  add(std::move(soft));

  const int dropped = dropout("attention_dropout", "attention", probabilities);
  Operator weighted = {.name = "weighted", .op = Op::MatMul, .inputs = {dropped, key}, .module = "attention"};
  weighted.saved = weighted.inputs;
  weighted.outputs = {value("context", {b, s, a * d}, type)};
  weighted.shapes = {{.dims = {b * a, s, d, t}, .dtype = gemm_type()}};
  weighted.attributes = "values " + heads;
  weighted.forward = {flops, map + k + q};
  weighted.input_grad = {2 * flops, 2 * map + 2 * q + 2 * k};
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
    communicate(name + "_gather",
                {.forward = CollectiveKind::AllGather, .backward = CollectiveKind::ReduceScatter, .bytes = bytes(full)}, {x},
                {full})
        .always_recompute = true;
    return full;
  }
  const Communication sum = {.backward = CollectiveKind::AllReduce, .bytes = in.bytes};
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
  const Value in = at(x);
  if (sequence_parallel()) {
    const int part = value(name + "_scattered", sequence(in.dims, 1, sharding_.tp), in.dtype);
    communicate(name + "_reduce",
                {.forward = CollectiveKind::ReduceScatter, .backward = CollectiveKind::AllGather, .bytes = in.bytes}, {x},
                {part});
    return part;
  }
  communicate(name + "_reduce", {.forward = CollectiveKind::AllReduce, .bytes = in.bytes}, {x}, {});
  return x;
}

void LayerBuilder::reduce_in_place(const std::string& name, int x, const std::string& attributes) {
  communicate(name, {.forward = CollectiveKind::AllReduce, .bytes = bytes(x)}, {x}, {}).attributes = attributes;
}

int LayerBuilder::context_gather(const std::string& name, int x) {
  if (sharding_.cp == 1) return x;
  const Value in = at(x);
  const int full = value(in.name + "_all", sequence(in.dims, sharding_.cp, 1), in.dtype);
  communicate(name,
              {.axis = CommunicationAxis::Cp,
               .forward = CollectiveKind::AllGather,
               .backward = CollectiveKind::ReduceScatter,
               .bytes = bytes(full),
               .ring_exchange = sharding_.context_ring},
              {x}, {full})
      .always_recompute = true;
  return full;
}

}  // namespace foreshard
