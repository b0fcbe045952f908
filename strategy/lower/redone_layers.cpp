#include "strategy/lower/redone_layers.h"

#include <algorithm>

#include "core/base/count_text.h"
#include "strategy/recompute/keep_rule.h"
#include "strategy/schedule/schedule.h"

namespace foreshard {

namespace {

std::string text(std::int64_t n) { return std::to_string(n); }

int layers_of_model(const OpGraph& graph) {
  return static_cast<int>(
      std::count_if(graph.layers.begin(), graph.layers.end(), [](const auto& layer) { return layer.counted; }));
}

// The layers of one stage that are redone, by their numbers in the stage and in the model.
bool takes_in(const Recompute& recompute, int stage, int rank, int of_stage, int of_model, int pp) {
  if (!recompute.only.empty()) return std::binary_search(recompute.only.begin(), recompute.only.end(), of_model);
  if (recompute.per_stage.empty()) return recompute.layers == 0 || of_stage < recompute.layers;
  const bool by_rank = static_cast<int>(recompute.per_stage.size()) == pp;
  return of_stage < recompute.per_stage[static_cast<std::size_t>(by_rank ? rank : stage)];
}

}  // namespace

int counted_layers(const OpGraph& graph, const StageLayout& layout, int stage) {
  int count = 0;
  for (int l = layout.first[static_cast<std::size_t>(stage)]; l < layout.first[static_cast<std::size_t>(stage) + 1]; ++l)
    count += graph.layers[static_cast<std::size_t>(l)].counted ? 1 : 0;
  return count;
}

std::vector<char> layers_redone(const Recompute& recompute, const OpGraph& graph, const StageLayout& layout, Schedule schedule,
                                int pp) {
  std::vector<char> redone(graph.layers.size(), 0);
  if (recompute.kind == RecomputeKind::Each) {
    const std::vector<KeepForm> forms = keep_forms(recompute);
    std::size_t next = 0;
    for (std::size_t l = 0; l < redone.size() && next < recompute.each.size(); ++l)
      if (graph.layers[l].counted) redone[l] = static_cast<char>(form_of(forms, recompute.each[next++]));
  }
  if (recompute.kind != RecomputeKind::Full) return redone;
  int of_model = 0;
  for (int stage = 0; stage < layout.stages(); ++stage) {
    int of_stage = 0;
    for (int l = layout.first[static_cast<std::size_t>(stage)]; l < layout.first[static_cast<std::size_t>(stage) + 1]; ++l) {
      if (!graph.layers[static_cast<std::size_t>(l)].counted) continue;
      const int rank = rank_of_stage(schedule, stage, pp);
      redone[static_cast<std::size_t>(l)] = takes_in(recompute, stage, rank, of_stage++, of_model++, pp);
    }
  }
  return redone;
}

std::optional<Infeasible> refuse_layers(const Recompute& recompute, const OpGraph& graph, const StageLayout& layout, int pp) {
  if (recompute.kind != RecomputeKind::Full && recompute.kind != RecomputeKind::Each) return {};
  const std::string what = "recompute " + to_text(recompute);
  const int layers = layers_of_model(graph), stages = layout.stages();
  if (const auto named = static_cast<int>(recompute.each.size()); named > 0 && named != layers)
    return Infeasible{.reason = what + " names " + counted(named, "layer") + ", the model has " + text(layers),
                      .would_help = {"--recompute best"}};
  if (!recompute.only.empty() && recompute.only.back() >= layers)
    return Infeasible{
        .reason = what + " names layer " + text(recompute.only.back()) + ", the model has layers 0 to " + text(layers - 1),
        .would_help = {"--recompute auto"}};
  const auto counts = static_cast<int>(recompute.per_stage.size());
  if (counts == 0) return {};
  if (counts != stages && counts != pp)
    return Infeasible{.reason = what + " names " + counted(counts, "stage") + ", the strategy has " + text(stages) +
                                (stages == pp ? "" : " on " + counted(pp, "rank")),
                      .would_help = {"--recompute auto", "a number for each of the " + counted(pp, "rank")}};
  for (int stage = 0; stage < stages && counts == stages; ++stage)
    if (const int asked = recompute.per_stage[static_cast<std::size_t>(stage)], has = counted_layers(graph, layout, stage);
        asked > has)
      return Infeasible{.reason = what + " asks for " + counted(asked, "layer") + " of stage " + text(stage) + ", which has " +
                                  text(has)};
  return {};
}

}  // namespace foreshard
