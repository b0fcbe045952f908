// Which linear layers of a layer list tensor parallelism cuts, and how.
#include "core/graph/op_graph_layer_list.h"

#include <algorithm>
#include <string>

#include "core/base/error.h"

namespace foreshard {

namespace {

const char* weights_of(LayerOp op) {
  switch (op) {
    case LayerOp::Conv2d: return "a convolution";
    case LayerOp::BatchNorm: return "a batch norm";
    case LayerOp::Linear:
    case LayerOp::Relu:
    case LayerOp::MaxPool:
    case LayerOp::AvgPool:
    case LayerOp::Add:
    case LayerOp::Flatten: return nullptr;
  }
  return nullptr;
}

}  // namespace

LayerCuts layer_cuts(const LayerList& list, int tp) {
  const std::size_t count = list.layers.size();
  LayerCuts cuts{.of = std::vector<int>(count, -1), .split = std::vector<char>(count), .gathered = std::vector<char>(count)};
  if (tp == 1) return cuts;
  const std::string degree = "tp " + std::to_string(tp);
  for (const LayerSpec& layer : list.layers)
    if (const char* what = weights_of(layer.op)) throw Error(degree + " cuts linear layers; " + layer.name + " is " + what);
  const std::vector<std::vector<int>> inputs = input_layers(list);
  // The entry that reads this entry, if there is exactly one.
  const auto reader = [&](std::size_t entry) {
    int found = -1;
    for (std::size_t other = 0; other < count; ++other)
      for (const int from : inputs[other])
        if (from == static_cast<int>(entry)) found = found == -1 ? static_cast<int>(other) : static_cast<int>(count);
    return found < static_cast<int>(count) ? found : -1;
  };
  bool any = false;
  for (std::size_t first = 0; first < count; ++first) {
    if (list.layers[first].op != LayerOp::Linear || cuts.of[first] >= 0) continue;
    std::vector<std::size_t> between = {first};
    int next = reader(first);
    for (; next >= 0; next = reader(static_cast<std::size_t>(next))) {
      const LayerOp op = list.layers[static_cast<std::size_t>(next)].op;
      if (op != LayerOp::Relu && op != LayerOp::Flatten) break;
      between.push_back(static_cast<std::size_t>(next));
    }
    const LayerSpec& columns = list.layers[first];
    if (next < 0 || list.layers[static_cast<std::size_t>(next)].op != LayerOp::Linear) {
      if (columns.features % tp == 0) cuts.of[first] = 0, cuts.gathered[first] = 1, any = true;
      continue;
    }
    if (columns.features % tp != 0)
      throw Error(degree + " does not divide the " + std::to_string(columns.features) + " features of " + columns.name);
    cuts.of[first] = 0, cuts.of[static_cast<std::size_t>(next)] = 1, any = true;
    for (const std::size_t entry : between) cuts.split[entry] = 1;
  }
  if (!any) throw Error(degree + " divides the features of no linear layer");
  return cuts;
}

}  // namespace foreshard
