#include "strategy/tune/plan_trial.h"

#include "strategy/estimate/estimate.h"
#include "strategy/resolve/resolve.h"

namespace foreshard {

std::optional<Plan> trial_plan(const Model& model, const Cluster& cluster, Strategy strategy, LowerOptions options) {
  if (strategy.recompute.kind > RecomputeKind::Modules) strategy.recompute = {};
  options.ignore_memory = true, options.pack_by_order = false;
  auto answer = lower(model, cluster, without_open_choices(std::move(strategy)), options);
  if (auto* lowered = std::get_if<Lowered>(&answer)) return std::move(lowered->plan);
  return {};
}

std::optional<ScheduleTimes<double>> trial_times(const Model& model, const Cluster& cluster, const Strategy& strategy,
                                                 const LowerOptions& options) {
  const auto plan = trial_plan(model, cluster, strategy, options);
  if (!plan) return {};
  const bool overlapped = strategy.communication.overlap->p2p;
  ScheduleTimes<double> times{.in_turn = overlapped};
  double before = 0;
  for (const StageDurations& stage : stage_durations(*plan, cluster)) {
    times.forward.push_back(stage.forward + (overlapped ? 0 : stage.hop));
    times.input_grad.push_back(stage.backward - stage.weights + (overlapped ? 0 : before));
    before = stage.hop;
    times.weight_grad.push_back(stage.weights);
    times.hops.push_back(overlapped ? stage.hop : 0);
  }
  return times;
}

}  // namespace foreshard
