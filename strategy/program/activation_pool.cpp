#include "strategy/program/activation_pool.h"

#include <algorithm>

namespace foreshard {

// The first kind of layer with the same values: attention over a window keeps as many bytes as attention over all tokens.
static int first_alike(const OpGraph& graph, int kind) {
  const LayerGraph& own = graph.kinds[static_cast<std::size_t>(kind)];
  const auto is_alike = [&](const LayerGraph& other) {
    return other.values == own.values && other.input == own.input && other.output == own.output;
  };
  return static_cast<int>(std::ranges::find_if(graph.kinds, is_alike) - graph.kinds.begin());
}

std::vector<std::vector<int>> pool_places(const Lowering& lowering, const std::vector<int>& stages) {
  using Nth = std::tuple<int, int, int>;  // kind by its values, how it is redone, how many like it come before in the chunk
  std::vector<std::vector<Nth>> layers;   // [chunk]
  std::map<Nth, std::size_t> chunks_with;
  for (const int stage : stages) {
    std::map<std::pair<int, int>, int> count;
    const int first = lowering.first_layer(stage), end = first + lowering.layers_of(stage);
    layers.emplace_back();
    for (int l = first; l < end; ++l) {
      const OpGraph::Layer& layer = lowering.graph.layers[static_cast<std::size_t>(l)];
      if (!layer.counted) continue;
      const int row = lowering.tables.activations.row_of(l), kind = first_alike(lowering.graph, layer.kind);
      layers.back().emplace_back(kind, row, count[{kind, row}]++);
      ++chunks_with[layers.back().back()];
    }
  }
  std::map<Nth, int> numbers;
  std::vector<std::vector<int>> places;
  for (const std::vector<Nth>& of_chunk : layers) {
    places.emplace_back();
    for (const Nth& nth : of_chunk) {
      const bool in_all = chunks_with.at(nth) == stages.size();
      places.back().push_back(in_all ? numbers.try_emplace(nth, static_cast<int>(numbers.size())).first->second : -1);
    }
  }
  return places;
}

}  // namespace foreshard
