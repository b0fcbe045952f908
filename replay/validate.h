// Validate: every number, index and name that the player will use is looked at before a clock is, because SimGrid ends the
// process on bad input. Whether the plan makes sense is check_plan's business; here it only has to be
// playable.
#pragma once

#include <vector>

#include "core/network/network.h"
#include "core/plan/plan.h"
#include "core/plan/ranks.h"
#include "replay/replay.h"

namespace foreshard::player {

// All throw Error naming what, where, found and expected.
void check_playable(const Plan& plan);  // also what Ranks needs; call it first
void check_placed(const Plan& plan, const Ranks& ranks, const Network& network);
std::vector<double> check_stragglers(const ReplayOptions& options, int ranks);  // slowdown per rank

}  // namespace foreshard::player
