#include "core/graph/op_graph_layer_list.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <utility>

#include "core/base/error.h"
#include "core/graph/op_graph_builder.h"

namespace foreshard {

namespace {

const char* word(LayerOp op) {
  switch (op) {
    case LayerOp::Conv2d: return "conv";
    case LayerOp::BatchNorm: return "norm";
    case LayerOp::Relu: return "relu";
    case LayerOp::MaxPool:
    case LayerOp::AvgPool: return "pool";
    case LayerOp::Add: return "add";
    case LayerOp::Flatten: return "flatten";
    case LayerOp::Linear: return "linear";
  }
  return "?";
}

bool has_weights(LayerOp op) { return op == LayerOp::Conv2d || op == LayerOp::Linear || op == LayerOp::BatchNorm; }

// Names within a layer. If the entries share a dotted prefix ("layer1.0.conv1"), it names the layer, and the rest names the operators. If
// not, the layer is named after its first entry with weights, and operators are numbered, so that equal layers with different names are
// one kind.
struct LayerNames {
  std::string layer = {};
  std::vector<std::string> operators = {}, parameters = {};  // one per entry
};

std::string shared_prefix(const LayerList& list, const std::vector<int>& entries) {
  std::string prefix = list.layers[static_cast<std::size_t>(entries.front())].name;
  for (const int e : entries) {
    const std::string& name = list.layers[static_cast<std::size_t>(e)].name;
    const auto end = std::mismatch(prefix.begin(), prefix.end(), name.begin(), name.end()).first;
    prefix.erase(end, prefix.end());
  }
  const auto dot = prefix.rfind('.');
  return entries.size() < 2 || dot == std::string::npos ? "" : prefix.substr(0, dot);
}

LayerNames names_of(const LayerList& list, const std::vector<int>& entries) {
  LayerNames names = {.layer = shared_prefix(list, entries)};
  const bool prefixed = !names.layer.empty();
  std::map<std::string, int> count;
  for (const int e : entries) {
    const LayerSpec& spec = list.layers[static_cast<std::size_t>(e)];
    if (prefixed) {
      names.operators.push_back(spec.name.substr(names.layer.size() + 1));
      names.parameters.push_back(names.operators.back() + ".");
      continue;
    }
    names.operators.push_back(word(spec.op) + std::to_string(++count[word(spec.op)]));
    const bool first = names.layer.empty() && has_weights(spec.op);
    if (first) names.layer = spec.name;
    names.parameters.push_back(first ? "" : names.operators.back() + ".");
  }
  if (names.layer.empty()) names.layer = list.layers[static_cast<std::size_t>(entries.front())].name;
  return names;
}

Dims batched(std::int64_t batch, const Dims& shape) {
  Dims dims = {batch};
  dims.insert(dims.end(), shape.begin(), shape.end());
  return dims;
}

// One layer under construction: which value each entry has produced.
struct ListLayer {
  LayerBuilder& builder;
  const Sharding& sharding;
  std::map<int, int> values = {};  // entry (-1: the sample) -> value

  void convolution(const LayerSpec& spec, const std::string& name, const std::string& parameter, int x, int entry,
                   const Dims& shape);
  void batch_norm(const std::string& name, const std::string& parameter, int x, int entry);
  void pool(const LayerSpec& spec, const std::string& name, int x, int entry, const Dims& shape);
  void sum(const std::string& name, const std::vector<int>& inputs, int entry);
};

void ListLayer::convolution(const LayerSpec& spec, const std::string& name, const std::string& parameter, int x, int entry,
                            const Dims& shape) {
  const Value in = builder.at(x);
  const std::int64_t channels = in.dims[1], kernel = spec.kernel;
  Operator op = {.name = name, .op = ops::Conv2d{}, .inputs = {x}, .module = "conv"};
  const int y = builder.value(name + "_out", batched(sharding.micro_batch, shape), in.dtype);
  op.outputs = {y};
  const Dims filter = {spec.features, channels, kernel, kernel};
  // He et al. 2015: the variance that keeps the scale through a relu, 2 / fan in.
  const std::string init = "normal(" + number(std::sqrt(2.0 / static_cast<double>(channels * kernel * kernel))) + ")";
  op.weights = {builder.parameter({.name = parameter + "weight", .shape = filter, .init = init})};
  if (spec.bias)
    op.weights.push_back(builder.parameter({.name = parameter + "bias", .shape = {spec.features}, .init = "zeros"}));
  op.shapes = {{.dims = in.dims, .dtype = builder.gemm_type()},
               {.dims = {spec.features, kernel, spec.stride, spec.padding}, .dtype = builder.gemm_type()},
               {.dims = builder.at(y).dims, .dtype = builder.gemm_type()}};
  values[entry] = builder.add(std::move(op)).outputs[0];
}

void ListLayer::batch_norm(const std::string& name, const std::string& parameter, int x, int entry) {
  const Value in = builder.at(x);
  Operator op = {.name = name, .op = ops::BatchNorm{}, .inputs = {x}, .module = "norm"};
  op.outputs = {builder.value(name + "_out", in.dims, in.dtype)};
  op.weights = {builder.parameter({.name = parameter + "weight", .shape = {in.dims[1]}, .init = "ones"}),
                builder.parameter({.name = parameter + "bias", .shape = {in.dims[1]}, .init = "zeros"})};
  op.shapes = {{.dims = in.dims, .dtype = in.dtype}};
  values[entry] = builder.add(std::move(op)).outputs[0];
}

void ListLayer::pool(const LayerSpec& spec, const std::string& name, int x, int entry, const Dims& shape) {
  const Value in = builder.at(x);
  const std::int64_t kernel = spec.kernel, stride = spec.stride, padding = spec.padding;
  Operator op = {.name = name,
                 .op = ops::AvgPool{.kernel = kernel, .stride = stride, .padding = padding},
                 .inputs = {x},
                 .module = "pool"};
  if (spec.op == LayerOp::MaxPool) op.op = ops::MaxPool{.kernel = kernel, .stride = stride, .padding = padding};
  const int y = builder.value(name + "_out", batched(sharding.micro_batch, shape), in.dtype);
  op.outputs = {y};
  op.shapes = {{.dims = in.dims, .dtype = in.dtype}, {.dims = builder.at(y).dims, .dtype = in.dtype}};
  values[entry] = builder.add(std::move(op)).outputs[0];
}

void ListLayer::sum(const std::string& name, const std::vector<int>& inputs, int entry) {
  const Value in = builder.at(inputs.front());
  Operator op = {.name = name, .op = ops::Add{}, .inputs = inputs, .module = "add"};
  op.outputs = {builder.value(name + "_out", in.dims, in.dtype)};
  op.shapes = {{.dims = in.dims, .dtype = in.dtype}};
  values[entry] = builder.add(std::move(op)).outputs[0];
}

void loss(LayerBuilder& builder, const LayerList& list, int y) {
  if (list.classes > 0)
    return cross_entropy(builder, y, "loss", {.target = ops::CrossEntropy::Target::Label, .classes = list.classes});
  const Value in = builder.at(y);
  Operator op = {.name = "loss", .op = ops::SumOfSquares{}, .inputs = {y}, .module = "loss"};
  op.outputs = {builder.value("loss_value", {1}, builder.statistics_type(), false)};
  op.shapes = {{.dims = in.dims, .dtype = in.dtype}};
  builder.add(std::move(op));
}

// The samples of a micro-batch. They are data and need no gradient if the list has classes. Without classes the list is taken as a piece of
// a network, and its input as an activation that needs one.
int sample(LayerBuilder& builder, const LayerList& list, const Sharding& sharding) {
  const int x = builder.value("sample", batched(sharding.micro_batch, list.input), {}, list.classes == 0);
  Operator op = {.name = "sample", .op = ops::Sample{}, .outputs = {x}, .module = "sample"};
  op.shapes = {{.dims = builder.at(x).dims, .dtype = builder.at(x).dtype}};
  builder.add(std::move(op));
  return x;
}

struct Chain {
  const LayerList& list;
  const Sharding& sharding;
  std::vector<std::vector<int>> inputs, layers;
  std::vector<Dims> shapes;
  LayerCuts cuts;
  int readers(int entry) const {
    return static_cast<int>(
        std::ranges::count_if(inputs, [&](const auto& from) { return std::ranges::count(from, entry) > 0; }));
  }
};

Dims local_shape(const Chain& chain, int entry) {
  Dims shape = chain.shapes[static_cast<std::size_t>(entry)];
  if (chain.cuts.split[static_cast<std::size_t>(entry)]) shape.front() /= chain.sharding.tp;
  return shape;
}

// x whole -> columns of w -> y split, or gathered; x split -> rows of w -> partial sums, added -> y whole.
int cut_linear(LayerBuilder& builder, const Linear& what, int x, const Dims& output, bool shared, bool gathered) {
  if (what.split != 1) {
    const bool sums = what.split == 0 && builder.at(x).needs_grad;  // of the input's gradient
    const int y = builder.linear(what, sums ? builder.column_input(what.name, x, shared) : x, output);
    return gathered ? builder.gather_columns(what.name, y) : y;
  }
  Linear rows = what;
  rows.bias = false;
  const int y = builder.row_output(what.name, builder.linear(rows, x, output));
  if (!what.bias) return y;
  Operator op = {.name = what.name + "_bias", .op = ops::Add{}, .inputs = {y}, .module = "linear"};
  op.outputs = {builder.value(what.name + "_sum", output, builder.at(y).dtype)};
  op.weights = {builder.parameter({.name = what.bias_name, .shape = {what.out}, .init = "zeros"})};
  op.shapes = {{.dims = output, .dtype = builder.at(y).dtype}};
  return builder.add(std::move(op)).outputs[0];
}

void entry_operator(ListLayer& layer, const Chain& chain, const LayerNames& names, std::size_t position, int entry) {
  const LayerSpec& spec = chain.list.layers[static_cast<std::size_t>(entry)];
  const Dims shape = local_shape(chain, entry);
  const std::string& name = names.operators[position];
  std::vector<int> inputs;
  for (const int from : chain.inputs[static_cast<std::size_t>(entry)]) inputs.push_back(layer.values.at(from));
  const int x = inputs.front();
  switch (spec.op) {
    case LayerOp::Conv2d: layer.convolution(spec, name, names.parameters[position], x, entry, shape); return;
    case LayerOp::BatchNorm: layer.batch_norm(name, names.parameters[position], x, entry); return;
    case LayerOp::Relu:
      layer.values[entry] = layer.builder.activation(name, ActivationKind::Relu, x, layer.builder.at(x).dims);
      return;
    case LayerOp::MaxPool:
    case LayerOp::AvgPool: layer.pool(spec, name, x, entry, shape); return;
    case LayerOp::Add: layer.sum(name, inputs, entry); return;
    case LayerOp::Flatten: layer.values[entry] = x; return;  // the value is the same
    case LayerOp::Linear: {
      const int split = chain.cuts.of[static_cast<std::size_t>(entry)];
      const bool gathered = chain.cuts.gathered[static_cast<std::size_t>(entry)];
      std::int64_t in = split == 1 ? layer.sharding.tp : 1;
      for (std::size_t d = 1; d < layer.builder.at(x).dims.size(); ++d) in *= layer.builder.at(x).dims[d];
      const int from = chain.inputs[static_cast<std::size_t>(entry)].front();
      layer.values[entry] =
          cut_linear(layer.builder,
                     {.name = name,
                      .module = "linear",
                      .in = in,
                      .out = spec.features,
                      .split = split,
                      .bias = spec.bias,
                      .weight = names.parameters[position] + "weight",
                      .bias_name = names.parameters[position] + "bias"},
                     x, {layer.sharding.micro_batch, gathered ? shape.front() / layer.sharding.tp : shape.front()},
                     chain.readers(from) > 1, gathered);
      return;
    }
  }
}

LayerGraph build_layer(const Chain& chain, std::size_t index, const LayerNames& names) {
  const std::vector<int>& entries = chain.layers[index];
  const bool conv = std::any_of(entries.begin(), entries.end(),
                                [&](int e) { return chain.list.layers[static_cast<std::size_t>(e)].op == LayerOp::Conv2d; });
  LayerBuilder builder(conv ? "conv" : "linear", chain.sharding);
  ListLayer layer = {.builder = builder, .sharding = chain.sharding};
  int input = -1;
  if (index == 0) {
    layer.values[-1] = sample(builder, chain.list, chain.sharding);
  } else {
    const int before = chain.layers[index - 1].back();
    input = builder.value("x", batched(chain.sharding.micro_batch, local_shape(chain, before)));
    layer.values[before] = input;
  }
  for (std::size_t i = 0; i < entries.size(); ++i) entry_operator(layer, chain, names, i, entries[i]);
  const int last = layer.values.at(entries.back());
  if (index + 1 < chain.layers.size()) return builder.finish(input, last);
  loss(builder, chain.list, last);
  return builder.finish(input, -1);
}

}  // namespace

OpGraph layer_list_graph(const LayerList& list, const Sharding& sharding) {
  const auto one = [](const char* field, int found) {
    if (found != 1)
      throw Error(field + (" " + std::to_string(found)) +
                  ": a layer list is split by data, tensor and pipeline parallelism only");
  };
  one("cp", sharding.cp);
  const Chain chain = {.list = list,
                       .sharding = sharding,
                       .inputs = input_layers(list),
                       .layers = chain_layers(list),
                       .shapes = output_shapes(list),
                       .cuts = layer_cuts(list, sharding.tp)};
  OpGraph graph;
  for (std::size_t i = 0; i < chain.layers.size(); ++i) {
    const LayerNames names = names_of(list, chain.layers[i]);
    LayerGraph layer = build_layer(chain, i, names);
    const auto known = std::find(graph.kinds.begin(), graph.kinds.end(), layer);
    graph.layers.push_back({.name = names.layer, .kind = static_cast<int>(known - graph.kinds.begin()), .counted = true});
    if (known == graph.kinds.end()) graph.kinds.push_back(std::move(layer));
  }
  return graph;
}

Flops layer_list_flops(const LayerList& list) {
  const std::vector<std::vector<int>> inputs = input_layers(list);
  const std::vector<Dims> shapes = output_shapes(list);
  double sum = 0;
  for (std::size_t i = 0; i < list.layers.size(); ++i) {
    const LayerSpec& spec = list.layers[i];
    if (spec.op != LayerOp::Conv2d && spec.op != LayerOp::Linear) continue;
    const int from = inputs[i].front();
    const Dims& in = from < 0 ? list.input : shapes[static_cast<std::size_t>(from)];
    double forward = 2.0;
    for (const std::int64_t n : shapes[i]) forward *= static_cast<double>(n);
    forward *= static_cast<double>(in[0]);
    if (spec.op == LayerOp::Conv2d) forward *= static_cast<double>(spec.kernel) * static_cast<double>(spec.kernel);
    sum += forward * (from < 0 && list.classes > 0 ? 2.0 : 3.0);
  }
  return {sum};
}

}  // namespace foreshard
