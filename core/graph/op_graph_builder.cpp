#include "core/graph/op_graph_builder.h"

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

}  // namespace

std::string number(double value) {
  char text[32];
  std::snprintf(text, sizeof text, "%.12g", value);
  return text;
}

LayerBuilder::LayerBuilder(std::string kind, const Sharding& sharding, const SequenceSplit& split)
    : sharding_(sharding), split_(split) {
  layer_.kind = std::move(kind);
}

DType LayerBuilder::statistics_type() const { return sharding_.compute == DType::F64 ? DType::F64 : DType::F32; }

int LayerBuilder::value(std::string name, Dims dims, std::optional<DType> dtype, bool needs_grad) {
  const DType type = dtype.value_or(sharding_.compute);
  const Bytes size = product(dims) * size_of(type);
  layer_.values.push_back(
      {.name = prefix_ + name, .dims = std::move(dims), .dtype = type, .bytes = size, .needs_grad = needs_grad});
  return static_cast<int>(layer_.values.size()) - 1;
}

int LayerBuilder::shared(Parameter p) {
  for (std::size_t i = 0; i < layer_.parameters.size(); ++i)
    if (layer_.parameters[i].name == p.name) return static_cast<int>(i);
  const std::string prefix = std::exchange(prefix_, "");
  const int added = parameter(std::move(p));
  prefix_ = prefix;
  return added;
}

int LayerBuilder::parameter(Parameter p) {
  p.name = prefix_ + p.name;
  p.local = p.shape;
  p.frozen = freezes();
  if (p.split_dim >= 0) {
    auto& cut = p.local.at(static_cast<std::size_t>(p.split_dim));
    FS_ASSERT(cut % ranks(p.split_over) == 0);
    cut /= ranks(p.split_over);
  }
  layer_.parameters.push_back(std::move(p));
  return static_cast<int>(layer_.parameters.size()) - 1;
}

std::int64_t LayerBuilder::ranks(const Kinds& kinds) const {
  std::int64_t count = 1;
  for (const AxisKind& kind : kinds)
    count *= kind == AxisKind{DenseKind::Tensor}          ? sharding_.tp
             : kind == AxisKind{ExpertKind::Expert}       ? sharding_.ep / sharding_.expert_nodes
             : kind == AxisKind{ExpertKind::OuterExpert}  ? sharding_.expert_nodes
             : kind == AxisKind{ExpertKind::ExpertTensor} ? sharding_.etp
                                                          : 1;
  return count;
}

int LayerBuilder::replicated(std::string name, Dims shape, std::string init) {
  return parameter({.name = std::move(name), .shape = std::move(shape), .init = std::move(init)});
}

Operator& LayerBuilder::add(Operator op) {
  if (!op.communication) {
    ops::Sizes sizes = {.shapes = op.shapes, .param = sharding_.param, .weights = !op.weights.empty()};
    for (const int v : op.inputs)
      sizes.inputs.push_back(bytes(v)), sizes.inputs_need_grad = sizes.inputs_need_grad && at(v).needs_grad;
    for (const int v : op.outputs) sizes.outputs.push_back(bytes(v));
    sizes.input = at(op.inputs.empty() ? op.outputs.front() : op.inputs.front()).dtype;
    const ops::Works work = works(op.op, sizes);
    op.forward = work.forward, op.input_grad = work.input_grad, op.weight_grad = work.weight_grad;
    const ops::Saved kept = saved(op.op);
    for (std::size_t i = 0; i < op.inputs.size(); ++i)
      if (kept.inputs >> i & 1U) op.saved.push_back(op.inputs[i]);
    for (std::size_t i = 0; i < op.outputs.size(); ++i)
      if (kept.outputs >> i & 1U) op.saved.push_back(op.outputs[i]);
  }
  if (freezes()) settle_gradients(op);
  op.name = prefix_ + op.name;
  layer_.operators.push_back(std::move(op));
  return layer_.operators.back();
}

DType LayerBuilder::linear_type(const Linear& what) const {
  return what.module != "head" && !what.adapter ? sharding_.factors.value_or(sharding_.compute) : sharding_.compute;
}

std::vector<int> LayerBuilder::linear(const Linear& what, int x, const std::vector<Dims>& outputs,
                                      std::vector<std::string> names) {
  FS_ASSERT(!(what.split == 1 && what.bias));
  const std::int64_t k = what.split == 1 ? what.in / sharding_.tp : what.in;
  const std::int64_t n = what.split == 0 ? what.out / sharding_.tp : what.out;
  std::int64_t columns = 0;
  Operator op = {.name = what.name, .op = ops::MatMul{.first_token = what.first_token}, .inputs = {x}, .module = what.module};
  for (std::size_t i = 0; i < outputs.size(); ++i) {
    columns += outputs[i].back();
    op.outputs.push_back(value(names[i], outputs[i]));
  }
  FS_ASSERT(columns == n);
  const std::int64_t m = product(outputs[0]) / outputs[0].back();
  const auto blocks = static_cast<std::int64_t>(std::max<std::size_t>(1, what.block_rows.size()));
  const bool equal =
      std::adjacent_find(what.block_rows.begin(), what.block_rows.end(), std::not_equal_to<>()) == what.block_rows.end();
  const auto add_parameter = [&](Parameter p) { return what.shared ? shared(std::move(p)) : parameter(std::move(p)); };
  op.weights.push_back(add_parameter({.name = what.weight.empty() ? what.name + ".weight" : what.weight,
                                      .shape = {what.out, what.in},
                                      .split_dim = what.split,
                                      .blocks = blocks,
                                      .block_rows = equal ? Dims{} : what.block_rows,
                                      .init = what.init,
                                      .tied = what.tied}));
  if (what.adapter) layer_.parameters[static_cast<std::size_t>(op.weights.front())].frozen = false;
  if (what.bias) {
    op.weights.push_back(add_parameter({.name = what.bias_name.empty() ? what.name + ".bias" : what.bias_name,
                                        .shape = {what.out},
                                        .split_dim = what.split,
                                        .blocks = blocks,
                                        .block_rows = equal ? Dims{} : what.block_rows,
                                        .init = "zeros"}));
  }
  op.shapes = {{.dims = {1, m, n, k}, .dtype = linear_type(what)}};
  std::vector<int> results = add(std::move(op)).outputs;
  return adapts(what) ? adapted(what, x, results) : results;
}

int LayerBuilder::linear(const Linear& what, int x, Dims output) {
  return linear(what, x, std::vector<Dims>{std::move(output)}, {what.name + "_out"}).front();
}

int LayerBuilder::norm(const std::string& name, const Transformer& model, int x) {
  const Value in = at(x);
  const std::int64_t h = in.dims.back();
  const NormKind kind = model.norm;
  const bool around_one = model.block.norms_around_one;
  Operator op = {.name = name,
                 .op = ops::Norm{.kind = kind, .eps = model.block.norm_eps, .around_one = around_one},
                 .inputs = {x},
                 .module = "norm"};
  op.outputs = {value(name + "_out", in.dims, in.dtype)};
  op.weights = {replicated(name + ".weight", {h}, around_one ? "zeros" : "ones")};
  if (kind == NormKind::LayerNorm) op.weights.push_back(replicated(name + ".bias", {h}, "zeros"));
  op.shapes = {{.dims = {product(in.dims) / h, h}, .dtype = in.dtype}};
  return add(std::move(op)).outputs[0];
}

static ops::Activation activation_of(ActivationKind kind) {
  using Function = ops::Activation::Function;
  switch (kind) {
    case ActivationKind::Gelu: return {.function = Function::Gelu};
    case ActivationKind::Relu: return {.function = Function::Relu};
    case ActivationKind::SwiGlu: return {.function = Function::SwiGlu};
    case ActivationKind::GeGlu: return {.function = Function::GeGlu};
    case ActivationKind::ClampedSwiGlu: return {.function = Function::ClampedSwiGlu};
  }
  return {};
}

int LayerBuilder::activation(const std::string& name, ActivationKind kind, int x, Dims output) {
  const Value in = at(x);
  Operator op = {.name = name, .op = activation_of(kind), .inputs = {x}, .module = "activation"};
  op.shapes = {{.dims = {product(output) / output.back(), output.back()}, .dtype = in.dtype}};
  op.outputs = {value(name + "_out", std::move(output), in.dtype)};
  return add(std::move(op)).outputs[0];
}

// Rows [batch, sequence, features] lie outside the tensor-parallel regions, attention maps inside.
ops::Dropout LayerBuilder::dropout_at(const Dims& dims) {
  return {
      .p = sharding_.dropout, .site = sites_++, .sequence_parallel = sequence_parallel() && dims.size() == 3, .split = split_};
}

int LayerBuilder::dropout(const std::string& name, const std::string& module, int x, std::optional<SequenceSplit> split) {
  if (sharding_.dropout == 0) return x;
  const Value in = at(x);
  ops::Dropout what = dropout_at(in.dims);
  what.split = split.value_or(split_);
  Operator op = {.name = name, .op = what, .inputs = {x}, .module = module};
  op.outputs = {value(name + "_out", in.dims, in.dtype), value(name + "_mask", in.dims, DType::U8, false)};
  op.shapes = {{.dims = in.dims, .dtype = in.dtype}};
  return add(std::move(op)).outputs[0];
}

int LayerBuilder::residual(const std::string& name, int x, int skip, bool bias, const std::string& bias_name) {
  const Value in = at(x);
  const bool drops = sharding_.dropout > 0;
  Operator op = {.name = name, .op = ops::Add{}, .inputs = {x, skip}, .module = "dropout"};
  op.outputs = {value(name + "_out", in.dims, in.dtype)};
  op.shapes = {{.dims = in.dims, .dtype = in.dtype}};
  if (drops) {
    op.outputs.push_back(value(name + "_mask", in.dims, DType::U8, false));
    op.op = dropout_at(in.dims);
  }
  if (bias) op.weights = {replicated(bias_name, {in.dims.back()}, "zeros")};
  return add(std::move(op)).outputs[0];
}

int LayerBuilder::head_norm(const std::string& name, const ops::HeadNorm& what, const std::vector<int>& x,
                            const std::string& output) {
  const Value in = at(x[0]);
  Dims out = in.dims;
  if (what.kv_heads > 0) out.back() += at(x[1]).dims.back();
  Operator op = {.name = name, .op = what, .inputs = x, .module = "norm"};
  op.outputs = {value(output, out, in.dtype)};
  const auto weight = [&](const char* of, std::int64_t heads) {
    if (heads == 0 || what.over == QkNorm::Unweighted) return;
    const std::int64_t width = what.over == QkNorm::AllHeads ? heads * what.dim : what.dim;
    op.weights.push_back(replicated(of + std::string("_norm.weight"), {width}, what.around_one ? "zeros" : "ones"));
  };
  weight("q", what.heads);
  weight("k", what.kv_heads);
  op.shapes = {{.dims = in.dims, .dtype = in.dtype}};
  return add(std::move(op)).outputs[0];
}

int LayerBuilder::latent_heads(const ops::LatentHeads& what, int up, int shared) {
  const Value in = at(up);
  Dims out = in.dims;
  out.back() = what.heads * (what.plain + what.rotated + what.value);
  Operator op = {.name = "kv_heads", .op = what, .inputs = {up, shared}, .module = "qkv"};
  op.outputs = {value("kv", out, in.dtype)};
  op.shapes = {{.dims = in.dims, .dtype = in.dtype}};
  return add(std::move(op)).outputs[0];
}

int LayerBuilder::sum(const std::string& name, int x, int y) {
  const Value in = at(x);
  Operator op = {.name = name, .op = ops::Add{}, .inputs = {x, y}, .module = "dropout"};
  op.outputs = {value(name + "_out", in.dims, in.dtype)};
  op.shapes = {{.dims = in.dims, .dtype = in.dtype}};
  return add(std::move(op)).outputs[0];
}

int LayerBuilder::scale(const std::string& name, double factor, int x) {
  if (factor == 1) return x;
  const Value in = at(x);
  Operator op = {.name = name, .op = ops::Scale{.factor = factor}, .inputs = {x}, .module = "scale"};
  op.outputs = {value(name + "_out", in.dims, in.dtype)};
  op.shapes = {{.dims = in.dims, .dtype = in.dtype}};
  return add(std::move(op)).outputs[0];
}

int LayerBuilder::cap(const std::string& name, double cap, int x) {
  if (cap == 0) return x;
  const Value in = at(x);
  const std::int64_t columns = in.dims.back();
  Operator op = {.name = name,
                 .op = ops::Activation{.function = ops::Activation::Function::Cap, .cap = cap},
                 .inputs = {x},
                 .module = "activation"};
  op.outputs = {value(name + "_out", in.dims, in.dtype)};
  op.shapes = {{.dims = {product(in.dims) / columns, columns}, .dtype = in.dtype}};
  return add(std::move(op)).outputs[0];
}

LayerGraph LayerBuilder::finish(int input, int output) {
  layer_.input = input;
  layer_.output = output;
  return std::move(layer_);
}

}  // namespace foreshard
