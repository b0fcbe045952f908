#include "strategy/tune/plan_trial.h"

#include "strategy/resolve/resolve.h"

namespace foreshard {

std::optional<Plan> trial_plan(const Model& model, const Cluster& cluster, Strategy strategy, LowerOptions options) {
  const Recompute& recompute = strategy.recompute;
  if (recompute.kind > RecomputeKind::Modules || recompute.layers < 0) strategy.recompute = {};
  if (chooses_order(strategy)) strategy.pipeline.schedule = Schedule::OneFOneB, strategy.pipeline.order.clear();
  if (chooses_parts(strategy)) strategy.communication.parts.clear();
  if (chooses_buckets(strategy)) strategy.communication.bucket = {};
  if (chooses_moves(strategy)) strategy.offload.activations = OffloadedActivations::None;
  options.ignore_memory = true, options.pack_by_order = false;
  auto answer = lower(model, cluster, strategy, options);
  if (auto* lowered = std::get_if<Lowered>(&answer)) return std::move(lowered->plan);
  return {};
}

}  // namespace foreshard
