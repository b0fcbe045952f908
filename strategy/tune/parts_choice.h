// `--parts auto`: into how many parts the operators of attention and MLP are cut. Internal to strategy/.
#pragma once

#include <vector>

#include "strategy/lower/lower.h"

namespace foreshard {

// Of a resolved strategy. The planner of strategy/partition/fine_parts.h says from the times of one micro-batch's operations which numbers
// to try, trial plans which of them is the fastest. Empty: whole.
std::vector<int> best_parts(const Model& model, const Cluster& cluster, Strategy strategy, const LowerOptions& options);

}  // namespace foreshard
