#include "strategy/program/activation_pool.h"

namespace foreshard {

std::vector<std::vector<int>> pool_places(const Lowering& lowering, const std::vector<int>& stages) {
  using Nth = std::tuple<int, int, int>;  // kind, how it is redone, how many like it come before in the chunk
  std::vector<std::vector<Nth>> layers;   // [chunk]
  std::map<Nth, std::size_t> chunks_with;
  for (const int stage : stages) {
    std::map<std::pair<int, int>, int> count;
    const int first = lowering.first_layer(stage), end = first + lowering.layers_of(stage);
    layers.emplace_back();
    for (int l = first; l < end; ++l) {
      const OpGraph::Layer& layer = lowering.graph.layers[static_cast<std::size_t>(l)];
      if (!layer.counted) continue;
      const int row = lowering.tables.activations.row_of(l);
      layers.back().emplace_back(layer.kind, row, count[{layer.kind, row}]++);
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
