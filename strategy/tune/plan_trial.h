// A plan that is made only to be timed, while some choices of its strategy are still open. Internal to strategy/tune.
#pragma once

#include <optional>

#include "core/cluster/cluster.h"
#include "core/model/model.h"
#include "core/plan/plan.h"
#include "core/strategy/strategy.h"
#include "strategy/lower/lower.h"
#include "strategy/schedule/schedule.h"

namespace foreshard {

// Lowers `strategy` without its open choices (strategy/resolve/resolve.h) and without recomputation that differs from layer to layer.
// Memory is not checked. Empty: `lower` refuses it.
std::optional<Plan> trial_plan(const Model& model, const Cluster& cluster, Strategy strategy, LowerOptions options);

// Seconds of the stages' actions in that plan, and of transfers. A transfer that is not overlapped counts as part of the action that waits
// for it. `strategy` must be resolved. Empty: `lower` refuses it.
std::optional<ScheduleTimes<double>> trial_times(const Model& model, const Cluster& cluster, const Strategy& strategy,
                                                 const LowerOptions& options);

}  // namespace foreshard
