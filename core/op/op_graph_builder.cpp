#include "core/op/op_graph_builder.h"

#include <algorithm>
#include <cstdio>
#include <numeric>
#include <utility>

#include "core/base/error.h"

namespace foreshard {

namespace {

std::int64_t product(const Dims& dims) {
  return std::accumulate(dims.begin(), dims.end(), std::int64_t{1}, std::multiplies<>());
}

Bytes plus(std::initializer_list<Bytes> parts) {
  Bytes sum = {};
  for (const Bytes part : parts) sum += part;
  return sum;
}

}  // namespace

Bytes matrix(std::int64_t rows, std::int64_t columns, DType type) { return rows * columns * size_of(type); }

std::string number(double value) {
  char text[32];
  std::snprintf(text, sizeof text, "%.12g", value);
  return text;
}

LayerBuilder::LayerBuilder(std::string kind, const Sharding& sharding) : sharding_(sharding) { layer_.kind = std::move(kind); }

DType LayerBuilder::statistics_type() const { return sharding_.compute == DType::F64 ? DType::F64 : DType::F32; }

int LayerBuilder::value(std::string name, Dims dims, std::optional<DType> dtype, bool needs_grad) {
  // fp8 is a format of GEMM operands; the activations themselves stay bf16.
  const DType type = dtype.value_or(sharding_.compute == DType::F8 ? DType::BF16 : sharding_.compute);
  const Bytes size = product(dims) * size_of(type);
  layer_.values.push_back(
      {.name = std::move(name), .dims = std::move(dims), .dtype = type, .bytes = size, .needs_grad = needs_grad});
  return static_cast<int>(layer_.values.size()) - 1;
}

int LayerBuilder::parameter(Parameter p) {
  p.local = p.shape;
  if (p.split_dim >= 0) {
    auto& cut = p.local.at(static_cast<std::size_t>(p.split_dim));
    FS_ASSERT(cut % sharding_.tp == 0);
    cut /= sharding_.tp;
  }
  layer_.parameters.push_back(std::move(p));
  return static_cast<int>(layer_.parameters.size()) - 1;
}

int LayerBuilder::replicated(std::string name, Dims shape, std::string init) {
  return parameter({.name = std::move(name),
                    .shape = std::move(shape),
                    .init = std::move(init),
                    .sequence_parallel_grad = sequence_parallel()});
}

Operator& LayerBuilder::add(Operator op) {
  layer_.operators.push_back(std::move(op));
  return layer_.operators.back();
}

std::vector<int> LayerBuilder::linear(const Linear& what, int x, const std::vector<Dims>& outputs,
                                      std::vector<std::string> names) {
  FS_ASSERT(!(what.split == 1 && what.bias));
  const std::int64_t k = what.split == 1 ? what.in / sharding_.tp : what.in;
  const std::int64_t n = what.split == 0 ? what.out / sharding_.tp : what.out;
  std::int64_t columns = 0;
  Operator op = {
      .name = what.name, .op = Op::MatMul, .inputs = {x}, .saved = {x}, .attributes = what.attributes, .module = what.module};
  for (std::size_t i = 0; i < outputs.size(); ++i) {
    columns += outputs[i].back();
    op.outputs.push_back(value(names[i], outputs[i]));
  }
  FS_ASSERT(columns == n);
  const std::int64_t m = product(outputs[0]) / outputs[0].back();
  const DType type = at(x).dtype;
  const auto blocks = static_cast<std::int64_t>(std::max<std::size_t>(1, what.block_rows.size()));
  const bool equal =
      std::adjacent_find(what.block_rows.begin(), what.block_rows.end(), std::not_equal_to<>()) == what.block_rows.end();
  op.weights.push_back(parameter({.name = what.weight.empty() ? what.name + ".weight" : what.weight,
                                  .shape = {what.out, what.in},
                                  .split_dim = what.split,
                                  .blocks = blocks,
                                  .block_rows = equal ? Dims{} : what.block_rows,
                                  .init = what.init,
                                  .tied = what.tied,
                                  .sequence_parallel_grad = what.split < 0 && sequence_parallel()}));
  if (what.bias) {
    op.weights.push_back(parameter({.name = what.bias_name.empty() ? what.name + ".bias" : what.bias_name,
                                    .shape = {what.out},
                                    .split_dim = what.split,
                                    .blocks = blocks,
                                    .block_rows = equal ? Dims{} : what.block_rows,
                                    .init = "zeros",
                                    .sequence_parallel_grad = what.split < 0 && sequence_parallel()}));
  }
  const Bytes a = matrix(m, k, type), w = matrix(n, k, sharding_.param), y = matrix(m, n, type);
  const Flops flops = {2.0 * static_cast<double>(m) * static_cast<double>(n) * static_cast<double>(k)};
  op.shapes = {{.dims = {1, m, n, k}, .dtype = gemm_type()}};
  op.forward = {flops, plus({a, w, y})};
  if (at(x).needs_grad) op.input_grad = {flops, plus({y, w, a})};
  op.weight_grad = {flops, plus({y, a, w})};
  return add(std::move(op)).outputs;
}

int LayerBuilder::linear(const Linear& what, int x, Dims output) {
  return linear(what, x, std::vector<Dims>{std::move(output)}, {what.name + "_out"}).front();
}

int LayerBuilder::norm(const std::string& name, NormKind kind, double eps, int x) {
  const Value in = at(x);
  const std::int64_t h = in.dims.back();
  Operator op = {.name = name, .op = Op::Norm, .inputs = {x}, .saved = {x}, .module = "norm"};
  op.outputs = {value(name + "_out", in.dims, in.dtype)};
  op.weights = {replicated(name + ".weight", {h}, "ones")};
  if (kind == NormKind::LayerNorm) op.weights.push_back(replicated(name + ".bias", {h}, "zeros"));
  op.attributes = std::string(kind == NormKind::LayerNorm ? "layernorm" : "rmsnorm") + " eps=" + number(eps);
  op.shapes = {{.dims = {product(in.dims) / h, h}, .dtype = in.dtype}};
  op.forward.traffic = 2 * in.bytes;
  op.input_grad.traffic = 3 * in.bytes;  // statistics are computed again from x in the same pass
  return add(std::move(op)).outputs[0];
}

int LayerBuilder::activation(const std::string& name, ActivationKind kind, int x, Dims output) {
  const Value in = at(x);
  Operator op = {.name = name, .op = Op::Activation, .inputs = {x}, .module = "activation"};
  op.shapes = {{.dims = {product(output) / output.back(), output.back()}, .dtype = in.dtype}};
  const int y = value(name + "_out", std::move(output), in.dtype);
  op.outputs = {y};
  op.saved = {kind == ActivationKind::Relu ? y : x};  // the sign of the result is all that relu needs
  switch (kind) {
    case ActivationKind::Gelu: op.attributes = "gelu"; break;
    case ActivationKind::Relu: op.attributes = "relu"; break;
    case ActivationKind::SwiGlu: op.attributes = "swiglu"; break;
  }
  op.forward.traffic = in.bytes + bytes(y);
  op.input_grad.traffic = bytes(op.saved[0]) + bytes(y) + in.bytes;
  return add(std::move(op)).outputs[0];
}

// Rows [batch, sequence, features] lie outside the tensor-parallel regions, attention maps inside.
std::string LayerBuilder::dropout_attributes(const Dims& dims) {
  const bool part = sequence_parallel() && dims.size() == 3;
  return "p=" + number(sharding_.dropout) + " site=" + std::to_string(sites_++) + (part ? " sequence_parallel" : "");
}

int LayerBuilder::dropout(const std::string& name, const std::string& module, int x) {
  if (sharding_.dropout == 0) return x;
  const Value in = at(x);
  Operator op = {.name = name, .op = Op::Dropout, .inputs = {x}, .module = module};
  op.outputs = {value(name + "_out", in.dims, in.dtype), value(name + "_mask", in.dims, DType::U8, false)};
  op.saved = {op.outputs[1]};
  op.shapes = {{.dims = in.dims, .dtype = in.dtype}};
  op.attributes = dropout_attributes(in.dims);
  op.forward.traffic = op.input_grad.traffic = 2 * in.bytes + bytes(op.outputs[1]);
  return add(std::move(op)).outputs[0];
}

int LayerBuilder::residual(const std::string& name, int x, int skip, bool bias, const std::string& bias_name) {
  const Value in = at(x);
  const bool drops = sharding_.dropout > 0;
  Operator op = {.name = name, .op = drops ? Op::Dropout : Op::Add, .inputs = {x, skip}, .module = "dropout"};
  op.outputs = {value(name + "_out", in.dims, in.dtype)};
  op.shapes = {{.dims = in.dims, .dtype = in.dtype}};
  op.forward.traffic = 3 * in.bytes;
  if (drops) {
    op.outputs.push_back(value(name + "_mask", in.dims, DType::U8, false));
    op.saved = {op.outputs[1]};
    op.attributes = dropout_attributes(in.dims);
    op.forward.traffic += bytes(op.outputs[1]);
    op.input_grad.traffic = 2 * in.bytes + bytes(op.outputs[1]);
  }
  if (bias) {
    op.weights = {replicated(bias_name, {in.dims.back()}, "zeros")};
    if (!drops) op.weight_grad.traffic = in.bytes;  // column sums; with dropout the kernel above makes them too
  }
  return add(std::move(op)).outputs[0];
}

int LayerBuilder::rope(const AttentionShape& shape, double theta, int x) {
  const Value in = at(x);
  Operator op = {.name = in.name == "kv"  ? "rope_k"
                         : in.name == "q" ? "rope_q"
                                          : "rope",
                 .op = Op::Rope,
                 .inputs = {x},
                 .module = "rope"};
  op.outputs = {value(in.name + "_rotated", in.dims, in.dtype)};
  op.shapes = {{.dims = in.dims, .dtype = in.dtype}};
  op.attributes = "heads=" + std::to_string(in.name == "kv" ? 0 : shape.heads) +
                  " kv=" + std::to_string(in.name == "q" ? 0 : shape.kv_heads) + " dim=" + std::to_string(shape.dim) +
                  " theta=" + number(theta);
  op.forward.traffic = op.input_grad.traffic = 2 * in.bytes;
  return add(std::move(op)).outputs[0];
}

LayerGraph LayerBuilder::finish(int input, int output) {
  layer_.input = input;
  layer_.output = output;
  return std::move(layer_);
}

}  // namespace foreshard
