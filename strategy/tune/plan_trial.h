// A plan that is made only to be timed, while something is still open. Internal to strategy/tune.
#pragma once

#include <optional>

#include "core/cluster/cluster.h"
#include "core/model/model.h"
#include "core/plan/plan.h"
#include "core/strategy/strategy.h"
#include "strategy/lower/lower.h"

namespace foreshard {

// Whatever memory it takes. Recomputation that is to be chosen, or planned, is none; parts are whole; an order is 1f1b; buckets have their default size. None: it
// cannot be made.
std::optional<Plan> trial_plan(const Model& model, const Cluster& cluster, Strategy strategy, LowerOptions options);

}  // namespace foreshard
