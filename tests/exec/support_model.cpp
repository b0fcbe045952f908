#include <algorithm>

#include "exec/arithmetic/host_init.h"
#include "exec/base/philox.h"
#include "tests/exec/host_model.h"

namespace foreshard {

static const LayerGraph& kind_of(const OpGraph& graph, std::size_t layer) {
  return graph.kinds[static_cast<std::size_t>(graph.layers[layer].kind)];
}
static std::string name_of(const OpGraph& graph, std::size_t layer, int parameter) {
  const Parameter& p = kind_of(graph, layer).parameters[static_cast<std::size_t>(parameter)];
  return p.tied ? "embedding.token.weight" : graph.layers[layer].name + "." + p.name;
}

static void add(Array& sum, const Array& x) {
  if (sum.size() == 0) {
    sum = x;
    return;
  }
  for (std::int64_t i = 0; i < sum.size(); ++i) sum.set(i, sum.at(i) + x.at(i));
}

ModelRun make_model_run(const Model& model, const Sharding& sharding, const OpArguments& arguments, std::uint64_t seed) {
  ModelRun run{.graph = build_op_graph(model, sharding), .arguments = arguments};
  for (std::size_t l = 0; l < run.graph.layers.size(); ++l) {
    const LayerGraph& layer = kind_of(run.graph, l);
    for (std::size_t p = 0; p < layer.parameters.size(); ++p) {
      const Parameter& parameter = layer.parameters[p];
      if (parameter.tied) continue;
      const Tensor tensor{.name = name_of(run.graph, l, static_cast<int>(p)), .shape = parameter.shape, .init = parameter.init};
      Array weights(shard_elements(tensor.shape, {}), sharding.param);
      fill_initial(tensor, {}, 0, seed, weights.operand());
      run.parameters[tensor.name] = weights;
    }
  }
  return run;
}

double ModelRun::forward() {
  runs.clear();
  runs.resize(graph.layers.size());
  Array border;
  double loss = 0;
  for (std::size_t l = 0; l < graph.layers.size(); ++l) {
    const LayerGraph& layer = kind_of(graph, l);
    std::vector<Array> values(layer.values.size());
    if (layer.input >= 0) values[static_cast<std::size_t>(layer.input)] = border;
    for (const Operator& op : layer.operators) {
      OperatorRun run{.layer = layer, .op = op, .arguments = arguments};
      run.arguments.layer = name_key(graph.layers[l].name);
      for (const int input : op.inputs) run.inputs.push_back(values[static_cast<std::size_t>(input)]);
      for (const int weight : op.weights) run.weights.push_back(parameters.at(foreshard::name_of(graph, l, weight)));
      run.forward();
      for (std::size_t o = 0; o < op.outputs.size(); ++o) values[static_cast<std::size_t>(op.outputs[o])] = run.outputs[o];
      if (is_loss(op.op)) loss += run.outputs.back().at(0);
      runs[l].push_back(std::move(run));
    }
    if (layer.output >= 0) border = values[static_cast<std::size_t>(layer.output)];
  }
  return loss;
}

void ModelRun::backward() {
  gradients.clear();
  Array border;
  for (std::size_t l = graph.layers.size(); l-- > 0;) {
    const LayerGraph& layer = kind_of(graph, l);
    std::vector<Array> values(layer.values.size());  // gradients
    if (layer.output >= 0) values[static_cast<std::size_t>(layer.output)] = border;
    for (std::size_t o = layer.operators.size(); o-- > 0;) {
      const Operator& op = layer.operators[o];
      std::vector<Array> from;
      for (const int output : op.outputs) from.push_back(values[static_cast<std::size_t>(output)]);
      const bool starts = is_loss(op.op);
      const bool reached = starts || std::any_of(from.begin(), from.end(), [](const Array& a) { return a.size() > 0; });
      if (!reached) continue;
      const OperatorRun::Gradients made = runs[l][o].backward(from);
      for (std::size_t i = 0; i < op.inputs.size(); ++i)
        if (made.inputs[i].size() > 0) add(values[static_cast<std::size_t>(op.inputs[i])], made.inputs[i]);
      for (std::size_t w = 0; w < made.weights.size(); ++w)
        add(gradients[foreshard::name_of(graph, l, op.weights[w])], made.weights[w]);
    }
    if (layer.input >= 0) border = values[static_cast<std::size_t>(layer.input)];
  }
}

}  // namespace foreshard
