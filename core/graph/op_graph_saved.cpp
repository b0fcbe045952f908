#include "core/graph/op_graph_saved.h"

#include <algorithm>
#include <cstddef>

namespace foreshard {

namespace {

std::string group_of(const Operator& op, const std::vector<std::string>& modules) {
  if (op.communication) return op.always_recompute ? op.name : "";
  for (const std::string& module : modules) {
    if (op.module == module || op.name == module) return module;
    if (module == "mlp" && op.module == "activation") return module;
  }
  return "";
}

bool drops_results(const Operator& op) { return op.always_recompute || op.module == "norm" || op.module == "activation"; }

std::vector<int> producers(const LayerGraph& layer) {
  std::vector<int> of(layer.values.size(), -1);
  for (std::size_t i = 0; i < layer.operators.size(); ++i) {
    for (const int v : layer.operators[i].outputs) of[static_cast<std::size_t>(v)] = static_cast<int>(i);
  }
  return of;
}

}  // namespace

Retention retention(const LayerGraph& layer, const std::vector<std::string>& modules) {
  const std::size_t operators = layer.operators.size();
  std::vector<std::string> group(operators);
  for (std::size_t i = 0; i < operators; ++i) group[i] = group_of(layer.operators[i], modules);
  const std::vector<int> producer = producers(layer);
  std::vector<bool> needed(layer.values.size()), leaves(layer.values.size()), rerun(operators);
  for (std::size_t i = 0; i < operators; ++i) {
    for (const int v : layer.operators[i].saved) {
      const auto value = static_cast<std::size_t>(v);
      needed[value] = true;
      if (producer[value] < 0 || group[i] != group[static_cast<std::size_t>(producer[value])]) leaves[value] = true;
    }
  }
  // In reverse order, all readers of a value are decided before its producer.
  Retention result;
  for (std::size_t i = operators; i-- > 0;) {
    const Operator& op = layer.operators[i];
    for (const int v : op.outputs) {
      const auto value = static_cast<std::size_t>(v);
      if (!needed[value]) continue;
      if (!group[i].empty() && (!leaves[value] || drops_results(op))) {
        rerun[i] = true;
      } else {
        result.kept.push_back(v);
      }
    }
    if (!rerun[i]) continue;
    for (const int v : op.inputs) {
      const auto value = static_cast<std::size_t>(v);
      needed[value] = true;
      if (producer[value] < 0 || group[i] != group[static_cast<std::size_t>(producer[value])]) leaves[value] = true;
    }
  }
  for (std::size_t v = 0; v < layer.values.size(); ++v) {
    if (needed[v] && producer[v] < 0) result.kept.push_back(static_cast<int>(v));
  }
  std::sort(result.kept.begin(), result.kept.end());
  for (std::size_t i = 0; i < operators; ++i) {
    const Operator& op = layer.operators[i];
    if (op.outputs.empty() && op.communication && op.communication->forward) {  // in place on a value made again
      const int made = producer[static_cast<std::size_t>(op.inputs[0])];
      rerun[i] = made >= 0 && rerun[static_cast<std::size_t>(made)];
    }
    if (rerun[i]) result.rerun.push_back(static_cast<int>(i));
  }
  return result;
}

Retention full_recompute(const LayerGraph& layer) {
  if (layer.input < 0) return retention(layer);
  Retention result = {.kept = {layer.input}};
  for (std::size_t i = 0; i < layer.operators.size(); ++i) result.rerun.push_back(static_cast<int>(i));
  return result;
}

Bytes kept_bytes(const LayerGraph& layer, const Retention& retention) {
  Bytes sum = {};
  for (const int v : retention.kept) sum += layer.values[static_cast<std::size_t>(v)].bytes;
  return sum;
}

}  // namespace foreshard
