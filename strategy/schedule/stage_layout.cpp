#include "strategy/schedule/stage_layout.h"

#include <algorithm>
#include <numeric>

#include "core/base/count_text.h"
#include "core/strategy/strategy.h"

namespace foreshard {

static Infeasible uneven(int layers, int stages) {
  const int low = layers / stages;
  const int more = layers - low * stages;
  Infeasible refused;
  refused.reason = std::to_string(layers) + " layers do not divide evenly over " + std::to_string(stages) +
                   " pipeline stages (" + std::to_string(layers) + " / " + std::to_string(stages) + " = " +
                   std::to_string(low) + ", remainder " + std::to_string(more) + ")";
  if (low > 0)
    refused.would_help.push_back("--layer-split " + std::to_string(low + 1) + "x" + std::to_string(more) + "," +
                                 std::to_string(low) + "x" + std::to_string(stages - more));
  for (int fewer = std::min(stages, layers); fewer > 0; --fewer)
    if (layers % fewer == 0) {
      refused.would_help.push_back(counted(fewer, "stage") + " (" + std::to_string(layers / fewer) +
                                   (layers == fewer ? " layer each)" : " layers each)"));
      break;
    }
  return refused;
}

static std::variant<std::vector<int>, Infeasible> counts_of(int layers, int stages, const std::string& split) {
  if (split.empty()) {
    if (layers % stages != 0) return uneven(layers, stages);
    return std::vector<int>(static_cast<std::size_t>(stages), layers / stages);
  }
  std::vector<int> counts = parse_layer_split(split, "layer_split");
  const int sum = std::accumulate(counts.begin(), counts.end(), 0);
  if (static_cast<int>(counts.size()) != stages)
    return Infeasible{.reason = "layer split \"" + split + "\" names " + counted(counts.size(), "stage") +
                                ", the strategy has " + std::to_string(stages)};
  if (sum != layers)
    return Infeasible{.reason = "layer split \"" + split + "\" adds up to " + counted(sum, "layer") + ", the model has " +
                                std::to_string(layers)};
  return counts;
}

std::variant<StageLayout, Infeasible> stage_layout(const OpGraph& graph, int stages, const std::string& split) {
  const int layers = static_cast<int>(
      std::count_if(graph.layers.begin(), graph.layers.end(), [](const OpGraph::Layer& layer) { return layer.counted; }));
  auto counts = counts_of(layers, stages, split);
  if (auto* refused = std::get_if<Infeasible>(&counts)) return *refused;

  StageLayout layout;
  layout.first.push_back(0);
  std::size_t at = 0;
  for (const int count : std::get<std::vector<int>>(counts)) {
    for (int taken = 0; taken < count; ++at) taken += graph.layers[at].counted ? 1 : 0;
    if (count == 0 && layout.first.size() == 1)  // the embedding only
      while (at < graph.layers.size() && !graph.layers[at].counted) ++at;
    layout.first.push_back(static_cast<int>(at));
  }
  layout.first.back() = static_cast<int>(graph.layers.size());  // trailing uncounted layers: the head
  for (int stage = 0; stage < stages; ++stage)
    if (layout.first[static_cast<std::size_t>(stage)] == layout.first[static_cast<std::size_t>(stage) + 1])
      return Infeasible{.reason = "stage " + std::to_string(stage) + " would hold no layer"};
  return layout;
}

}  // namespace foreshard
