// Validate: every number, index and name that the simulator will use is looked at before SimGrid is, because SimGrid
// ends the process on bad input. Whether the plan makes sense is check_plan's business; here it only has to be
// playable.
#pragma once

#include <vector>

#include "core/network.h"
#include "core/plan.h"
#include "core/ranks.h"
#include "sim/simulate.h"

namespace foreshard::sim {

// All throw Error naming what, where, found and expected.
void check_playable(const Plan& plan);  // also what Ranks needs; call it first
void check_placed(const Plan& plan, const Ranks& ranks, const Network& network);
std::vector<double> check_stragglers(const SimulateOptions& options, int ranks);  // slowdown per rank

}  // namespace foreshard::sim
