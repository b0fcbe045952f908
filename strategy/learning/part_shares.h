// How much of an iteration each learnable part takes, by the refined estimate.
#pragma once

#include <vector>

#include "core/cluster/cluster.h"
#include "strategy/cost/framework_preset.h"
#include "strategy/cost/learned_factors.h"
#include "strategy/lower/lower.h"

namespace foreshard {

// d ln(iteration) / d ln(costs of the shape), by estimates with those costs 2 % longer: what waits for nothing else has none.
// `microbatches` as in refine; `outside`: of the iteration, beside the plan. Shapes in order, each once.
std::vector<PartShare> part_shares(Lowered lowered, const Cluster& cluster, const FrameworkPreset& preset, int microbatches = 0,
                                   Seconds outside = {});

}  // namespace foreshard
