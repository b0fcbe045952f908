// Policies of regions (greedy, greedy_sync): which layers of parameters stay on the device from their forward to their backward, and beside
// which backward the others are fetched again. Internal to strategy/.
#pragma once

#include <variant>

#include "strategy/lower/lower.h"

namespace foreshard {

// Regions are as many layers as it takes to reach 0.95 of the link's bandwidth. plan_offload chooses for them, with times from a plan that
// fetches each on demand, so that the arena is within `--offload-budget` (0: what the GPU has). The answer is its choice or fetching all on
// demand, whichever plan is faster and fits. Where nothing fits: with a budget Infeasible, else all on demand, and does_not_fit reports
// later what is missing. `strategy` is resolved, has one stage, and leaves nothing else open; `rows`: what was decided so far.
std::variant<RegionRule, Infeasible> best_regions(const Model& model, const Cluster& cluster, const Strategy& strategy,
                                                  const TunedRows& rows, const LowerOptions& options);

}  // namespace foreshard
