#include "strategy/resolve/redone_layers.h"

#include <algorithm>

#include "core/base/count_text.h"

namespace foreshard {

namespace {

int layers_of_model(const OpGraph& graph) {
  return static_cast<int>(
      std::count_if(graph.layers.begin(), graph.layers.end(), [](const auto& layer) { return layer.counted; }));
}

}  // namespace

int counted_layers(const OpGraph& graph, const StageLayout& layout, int stage) {
  int count = 0;
  for (int l = layout.first[static_cast<std::size_t>(stage)]; l < layout.first[static_cast<std::size_t>(stage) + 1]; ++l)
    count += graph.layers[static_cast<std::size_t>(l)].counted ? 1 : 0;
  return count;
}

std::optional<Infeasible> refuse_layers(const Recompute& recompute, const OpGraph& graph, const StageLayout& layout, int pp) {
  if (recompute.kind != RecomputeKind::Full && recompute.kind != RecomputeKind::Each) return {};
  const std::string what = "recompute " + to_text(recompute);
  const int layers = layers_of_model(graph), stages = layout.stages();
  if (const auto named = static_cast<int>(recompute.each.size()); named > 0 && named != layers)
    return Infeasible{.reason = what + " names " + counted(named, "layer") + ", the model has " + std::to_string(layers),
                      .would_help = {"--recompute best"}};
  if (!recompute.only.empty() && recompute.only.back() >= layers)
    return Infeasible{.reason = what + " names layer " + std::to_string(recompute.only.back()) +
                                ", the model has layers 0 to " + std::to_string(layers - 1),
                      .would_help = {"--recompute auto"}};
  const auto counts = static_cast<int>(recompute.per_stage.size());
  if (counts == 0) return {};
  if (counts != stages && counts != pp)
    return Infeasible{.reason = what + " names " + counted(counts, "stage") + ", the strategy has " + std::to_string(stages) +
                                (stages == pp ? "" : " on " + counted(pp, "rank")),
                      .would_help = {"--recompute auto", "a number for each of the " + counted(pp, "rank")}};
  for (int stage = 0; stage < stages && counts == stages; ++stage)
    if (const int asked = recompute.per_stage[static_cast<std::size_t>(stage)], has = counted_layers(graph, layout, stage);
        asked > has)
      return Infeasible{.reason = what + " asks for " + counted(asked, "layer") + " of stage " + std::to_string(stage) +
                                  ", which has " + std::to_string(has)};
  return {};
}

}  // namespace foreshard
