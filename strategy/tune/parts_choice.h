// `--parts auto`: into how many parts attention and MLP of each layer are cut. Internal to strategy/.
#pragma once

#include <vector>

#include "strategy/lower/lower.h"

namespace foreshard {

// The numbers of parts as CommunicationChoice::parts states them; empty: operators stay whole. `strategy` is resolved. Candidates are
// every number for all layers, what the planner of strategy/partition/fine_parts.h chooses for each layer from the times of one
// micro-batch's operators, and its most frequent choice for all layers. The candidate whose trial plan is fastest wins.
std::vector<int> best_parts(const Model& model, const Cluster& cluster, Strategy strategy, const LowerOptions& options);

}  // namespace foreshard
