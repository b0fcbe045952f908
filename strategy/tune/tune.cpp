#include "strategy/tune/tune.h"

#include <algorithm>

#include "core/check/check_plan.h"
#include "strategy/lower/begin_lowering.h"
#include "strategy/resolve/measured_memory.h"
#include "strategy/server/asynchronous_server.h"
#include "strategy/tune/bucket_choice.h"
#include "strategy/tune/order_choice.h"
#include "strategy/tune/partition_model.h"
#include "strategy/tune/parts_choice.h"
#include "strategy/tune/plan_trial.h"
#include "strategy/tune/recompute_choice.h"
#include "strategy/tune/recompute_layers.h"
#include "strategy/tune/recompute_schedule.h"
#include "strategy/tune/region_choice.h"
#include "strategy/tune/value_choice.h"
#include "strategy/verdict/verdict.h"

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

// For a schedule that is made for given times: the medians over the stages of a plan of a few micro-batches.
static void tune_times(const Model& model, const Cluster& cluster, Strategy& strategy, const LowerOptions& options) {
  constexpr std::int64_t kMicrobatches = 4;  // a first, a last and typical ones
  Strategy few = strategy;
  few.batch.global = std::min(strategy.batch.global, kMicrobatches * strategy.batch.micro * strategy.dp);
  const auto times = trial_times(model, cluster, few, options);
  strategy.pipeline.times = times ? median_times(*times) : ActionTimes{};
}

// Every worker of an asynchronous server is tuned like the one.
static std::variant<Tuned, Infeasible> tune_worker(const Model& model, const Cluster& cluster, const Strategy& resolved,
                                                   const LowerOptions& options) {
  auto tuned = tune(model, cluster, worker_of(resolved), options);
  if (auto* worker = std::get_if<Tuned>(&tuned)) {
    worker->strategy.dp = resolved.dp, worker->strategy.zero.group = resolved.zero.group;
    worker->strategy.batch.global = resolved.batch.global;
    worker->strategy.communication.asynchronous = true;
  }
  return tuned;
}

std::variant<Tuned, Infeasible> tune(const Model& model, const Cluster& cluster, const Strategy& strategy,
                                     const LowerOptions& options) {
  auto resolved = resolve(model, cluster, strategy);
  if (auto* refused = std::get_if<Infeasible>(&resolved)) return *refused;
  Tuned tuned{.strategy = with_measured_memory(model, cluster, std::get<Strategy>(std::move(resolved)), options.profile)};
  if (tuned.strategy.communication.asynchronous) return tune_worker(model, cluster, tuned.strategy, options);
  if (!tuned.strategy.stages.empty()) {
    if (auto refused = tune_buckets(model, cluster, tuned.strategy, options)) return *refused;
    return tuned;
  }
  const bool open_order = chooses_order(tuned.strategy);  // chosen last; all other choices are made with 1F1B
  if (open_order) tuned.strategy.pipeline.schedule = Schedule::OneFOneB, tuned.strategy.pipeline.order.clear();
  if (tuned.strategy.pipeline.layer_split == "auto")
    if (auto refused = tune_split(model, cluster, tuned.strategy, options)) return *refused;
  if (chooses_times(tuned.strategy)) tune_times(model, cluster, tuned.strategy, options);
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

// Where a framework runs the strategy, its memory decides whether it fits, not the arena of the plan.
static std::variant<Lowered, Infeasible> lowered(const Model& model, const Cluster& cluster, const Strategy& strategy,
                                                 const LowerOptions& options, const TunedRows& rows) {
  const auto lowering = strategy.communication.asynchronous ? lower_asynchronous : lower;
  const bool judged = !options.ignore_memory && names_framework(strategy);
  LowerOptions how = options;
  how.ignore_memory |= judged;
  auto answer = lowering(model, cluster, strategy, how, rows);
  const auto* made = std::get_if<Lowered>(&answer);
  if (made && options.check) expect_sound(made->plan);
  if (!made || !judged) return answer;
  const Verdict found = verdict(model, cluster, *made);
  if (found.kind == Verdict::Kind::DoesNotFit) return Infeasible{.reason = found.reason};
  return answer;
}

std::variant<Lowered, Infeasible> lower_tuned(const Model& model, const Cluster& cluster, const Tuned& tuned,
                                              const LowerOptions& options) {
  return lowered(model, cluster, tuned.strategy, options, tuned.rows);
}

std::variant<Lowered, Infeasible> tuned_plan(const Model& model, const Cluster& cluster, const Strategy& strategy,
                                             const LowerOptions& options) {
  if (!leaves_open(strategy) && !chooses_regions(strategy) && !chooses_times(strategy) && !strategy.communication.asynchronous)
    return lowered(model, cluster, strategy, options, {});
  auto tuned = tune(model, cluster, strategy, options);
  if (auto* refused = std::get_if<Infeasible>(&tuned)) return *refused;
  return lower_tuned(model, cluster, std::get<Tuned>(tuned), options);
}

}  // namespace foreshard
