// `--offload-activations free-time`: which activations go to host memory or to drives between their forward and their backward, and when
// each leaves and returns. Internal to strategy/.
#pragma once

#include <variant>
#include <vector>

#include "strategy/lower/lower.h"

namespace foreshard {

// The moves under which the plan takes least time and every rank's arena is within `--offload-budget` (0: what its GPU has); none where all
// ranks fit without. Planned for each stage by itself (free_time_offload) and lowered; moving everything replaces that where it is faster
// or smaller. Where nothing fits: with a budget Infeasible, else the smallest plan, and does_not_fit reports later what is missing.
// `strategy` is resolved, and leaves nothing else open.
std::variant<std::vector<ValueMove>, Infeasible> moves_by_free_time(const Model& model, const Cluster& cluster,
                                                                    const Strategy& strategy, const LowerOptions& options);

}  // namespace foreshard
