#include "strategy/tune/tune.h"

#include <algorithm>

#include "strategy/cost/framework_memory.h"
#include "strategy/lower/begin_lowering.h"
#include "strategy/tune/bucket_choice.h"
#include "strategy/tune/order_choice.h"
#include "strategy/tune/partition_model.h"
#include "strategy/tune/parts_choice.h"
#include "strategy/tune/recompute_choice.h"
#include "strategy/tune/recompute_layers.h"
#include "strategy/tune/recompute_schedule.h"
#include "strategy/tune/region_choice.h"
#include "strategy/tune/value_choice.h"

namespace foreshard {

static std::optional<Infeasible> tune_split(const Model& model, const Cluster& cluster, Strategy& strategy,
                                            const LowerOptions& options) {
  auto graph = graph_of(model, strategy);
  if (auto* refused = std::get_if<Infeasible>(&graph)) return *refused;
  const std::vector<OpGraph::Layer>& layers = std::get<OpGraph>(graph).layers;
  const auto counted = std::count_if(layers.begin(), layers.end(), [](const OpGraph::Layer& layer) { return layer.counted; });
  strategy.pipeline.layer_split = balanced_split(model, cluster, strategy, static_cast<int>(counted), options.profile);
  return {};
}

static std::optional<Infeasible> tune_buckets(const Model& model, const Cluster& cluster, Strategy& strategy,
                                              const LowerOptions& options) {
  if (!chooses_buckets(strategy)) return {};
  apply(best_units(model, cluster, strategy, options), strategy.communication);
  auto resolved = resolve(model, cluster, strategy);  // fills in the default bucket size, if that was chosen
  if (auto* refused = std::get_if<Infeasible>(&resolved)) return *refused;
  strategy = std::get<Strategy>(std::move(resolved));
  return {};
}

static std::optional<Infeasible> tune_recomputation(const Model& model, const Cluster& cluster, bool by_order, Tuned& tuned) {
  auto begun = begin_lowering(model, cluster, tuned.strategy);
  if (auto* refused = std::get_if<Infeasible>(&begun)) return *refused;
  Lowering& lowering = std::get<Lowering>(begun);
  Recompute& recompute = lowering.strategy.recompute;
  if (recompute == Recompute{.kind = RecomputeKind::Each}) {
    BestLayers best = best_layers(lowering, by_order);
    recompute = std::move(best.recompute);
    tuned.trades = std::move(best.trades);
  }
  if (recompute.layers < 0) recompute = fewest_redone_layers(lowering, by_order);
  tuned.strategy.recompute = recompute;
  if (recompute.kind < RecomputeKind::Rotor) return {};
  auto runs = schedule_stages(lowering, by_order);
  if (auto* refused = std::get_if<Infeasible>(&runs)) return *refused;
  tuned.rows.runs = std::get<std::vector<StageRuns>>(std::move(runs));
  return {};
}

std::variant<Tuned, Infeasible> tune(const Model& model, const Cluster& cluster, const Strategy& strategy,
                                     const LowerOptions& options) {
  Strategy measured = strategy;
  if (!measured.device_memory.framework) measured.device_memory.framework = measured_outside(options.profile, cluster);
  auto resolved = resolve(model, cluster, measured);
  if (auto* refused = std::get_if<Infeasible>(&resolved)) return *refused;
  Tuned tuned{.strategy = std::get<Strategy>(std::move(resolved))};
  if (!tuned.strategy.stages.empty()) {
    if (auto refused = tune_buckets(model, cluster, tuned.strategy, options)) return *refused;
    return tuned;
  }
  const bool open_order = chooses_order(tuned.strategy);  // chosen last; all other choices are made with 1F1B
  if (open_order) tuned.strategy.pipeline.schedule = Schedule::OneFOneB, tuned.strategy.pipeline.order.clear();
  if (tuned.strategy.pipeline.layer_split == "auto")
    if (auto refused = tune_split(model, cluster, tuned.strategy, options)) return *refused;
  if (chooses_parts(tuned.strategy)) tuned.strategy.communication.parts = best_parts(model, cluster, tuned.strategy, options);
  if (auto refused = tune_buckets(model, cluster, tuned.strategy, options)) return *refused;
  if (leaves_open(tuned.strategy))
    if (auto refused = tune_recomputation(model, cluster, options.pack_by_order, tuned)) return *refused;
  if (chooses_moves(tuned.strategy)) {
    auto moves = moves_by_free_time(model, cluster, tuned.strategy, options);
    if (auto* refused = std::get_if<Infeasible>(&moves)) return *refused;
    tuned.rows.moves = std::get<std::vector<ValueMove>>(std::move(moves));
  }
  if (chooses_regions(tuned.strategy)) {
    auto regions = best_regions(model, cluster, tuned.strategy, tuned.rows, options);
    if (auto* refused = std::get_if<Infeasible>(&regions)) return *refused;
    tuned.rows.regions = std::get<RegionRule>(std::move(regions));
  }
  if (open_order) tuned.strategy.pipeline = best_order(model, cluster, tuned.strategy, options);
  return tuned;
}

std::variant<Lowered, Infeasible> tuned_plan(const Model& model, const Cluster& cluster, const Strategy& strategy,
                                             const LowerOptions& options) {
  if (!leaves_open(strategy) && !chooses_regions(strategy)) return lower(model, cluster, strategy, options);
  auto tuned = tune(model, cluster, strategy, options);
  if (auto* refused = std::get_if<Infeasible>(&tuned)) return *refused;
  const Tuned& closed = std::get<Tuned>(tuned);
  return lower(model, cluster, closed.strategy, options, closed.rows);
}

}  // namespace foreshard
