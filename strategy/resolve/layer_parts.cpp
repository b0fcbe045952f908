#include "strategy/resolve/layer_parts.h"

#include <algorithm>

#include "core/base/count_text.h"
#include "core/strategy/strategy_options.h"

namespace foreshard {

std::vector<PartsRow> layer_parts(const std::vector<int>& parts, const OpGraph& graph) {
  std::vector<PartsRow> rows;
  if (std::ranges::all_of(parts, [](int n) { return n <= 1; })) return rows;
  std::size_t counted = 0;
  for (int l = 0; l < static_cast<int>(graph.layers.size()); ++l) {
    if (!graph.layers[static_cast<std::size_t>(l)].counted) continue;
    const std::size_t of_layer = parts.size() < 2 ? 1 : 2, at = std::min(counted++ * of_layer, parts.size() - of_layer);
    const auto first = parts.begin() + static_cast<std::ptrdiff_t>(at);
    std::vector<int> counts(first, first + static_cast<std::ptrdiff_t>(of_layer));
    if (!rows.empty() && rows.back().layers.last + 1 == l && rows.back().counts == counts)
      ++rows.back().layers.last;
    else
      rows.push_back({.layers = {l, l}, .counts = std::move(counts)});
  }
  return rows;
}

std::optional<Infeasible> refuse_parts(const Strategy& strategy, const OpGraph& graph) {
  const std::vector<int>& parts = strategy.communication.parts;
  const auto named = static_cast<int>(parts.size() / 2);
  const auto layers = static_cast<int>(std::ranges::count_if(graph.layers, &OpGraph::Layer::counted));
  if (parts.size() <= 2 || named <= layers) return {};
  return Infeasible{.reason = "parts " + find_option("parts")->get(strategy) + " names " + counted(named, "layer") +
                              ", the model has " + std::to_string(layers),
                    .would_help = {"--parts auto", "--parts 1"}};
}

}  // namespace foreshard
