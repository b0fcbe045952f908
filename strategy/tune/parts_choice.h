// `--parts auto`: into how many parts the operators of attention and MLP are cut. Internal to strategy/.
#pragma once

#include <vector>

#include "strategy/lower/lower.h"

namespace foreshard {

// The numbers of parts as CommunicationChoice::parts states them; empty: operators stay whole. `strategy` is resolved. Candidates are
// every number for both, and what the planner of strategy/partition/fine_parts.h chooses from the times of one micro-batch's operators.
// The candidate whose trial plan is fastest wins.
std::vector<int> best_parts(const Model& model, const Cluster& cluster, Strategy strategy, const LowerOptions& options);

}  // namespace foreshard
