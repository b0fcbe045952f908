#include <algorithm>
#include <limits>

#include "strategy/partition/partition.h"

#include "core/base/at.h"
#include "core/base/never.h"

namespace foreshard {

namespace {}  // namespace

// slowest[r][n]: the least cost of the first n layers on ranks 0 .. r. Among partitions of equal cost it takes one with a short last stage.
ChainPartition partition_pipeline(const std::vector<ChainLayer>& chain, const std::vector<StagePlace>& places,
                                  int microbatches) {
  const int layers = static_cast<int>(chain.size()), stages = static_cast<int>(places.size());
  std::vector<std::vector<double>> slowest(at(stages), std::vector<double>(at(layers + 1), kNever));
  std::vector<std::vector<int>> cut(at(stages), std::vector<int>(at(layers + 1), -1));
  for (int r = 0; r < stages; ++r) {
    const StagePlace& place = places[at(r)];
    const double flight = std::min(microbatches, stages - r);
    for (int n = r + 1; n <= layers; ++n) {
      double time = 0, bytes = 0;
      for (int first = n - 1; first >= r; --first) {
        const ChainLayer& layer = chain[at(first)];
        time += place.slowdown * (layer.forward + layer.backward);
        bytes += layer.states + flight * layer.kept;
        if (bytes > place.capacity || time >= slowest[at(r)][at(n)]) break;
        const double before = r == 0 ? (first == 0 ? 0.0 : kNever) : slowest[at(r - 1)][at(first)];
        const double hop = r == 0 ? 0.0 : places[at(r - 1)].hop + places[at(r - 1)].hop_per_byte * chain[at(first - 1)].output;
        const double cost = std::max({time, hop, before});
        if (cost < slowest[at(r)][at(n)]) slowest[at(r)][at(n)] = cost, cut[at(r)][at(n)] = first;
      }
    }
  }
  ChainPartition partition;
  if (stages == 0 || layers < stages || slowest[at(stages - 1)][at(layers)] == kNever) return partition;
  partition.cost = slowest[at(stages - 1)][at(layers)];
  for (int r = stages - 1, n = layers; r >= 0; --r) {
    const int first = cut[at(r)][at(n)];
    partition.stages.push_back({first, n, 1});
    n = first;
  }
  std::reverse(partition.stages.begin(), partition.stages.end());
  return partition;
}

std::string split_text(const std::vector<ChainStage>& stages) {
  std::string text;
  for (std::size_t i = 0; i < stages.size();) {
    const int layers = stages[i].last - stages[i].first;
    std::size_t same = i;
    while (same < stages.size() && stages[same].last - stages[same].first == layers) ++same;
    text += (text.empty() ? "" : ",") + std::to_string(layers) + (same - i > 1 ? "x" + std::to_string(same - i) : "");
    i = same;
  }
  return text;
}

}  // namespace foreshard
