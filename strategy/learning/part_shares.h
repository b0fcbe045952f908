// How much of an iteration each part takes whose cost can be learned (learn_costs.h), according to the refined estimate.
#pragma once

#include <vector>

#include "core/cluster/cluster.h"
#include "strategy/cost/framework_preset.h"
#include "strategy/cost/learned_factors.h"
#include "strategy/lower/lower.h"

namespace foreshard {

// For each shape of a part, in ascending order: d ln(time of the iteration) / d ln(costs of the shape). Measured as the change of the
// estimate when all costs of the shape are 2 % longer, so a part that is entirely hidden behind others has share 0. `microbatches` as in
// refine (strategy/estimate/estimate.h). `outside`: time of the iteration that is not in the plan.
std::vector<PartShare> part_shares(Lowered lowered, const Cluster& cluster, const FrameworkPreset& preset, int microbatches = 0,
                                   Seconds outside = {});

}  // namespace foreshard
