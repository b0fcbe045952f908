// Validate: checks every number, index and name that the player uses before a clock sees it, because SimGrid ends the process on bad
// input. Whether the plan makes sense is checked by check_plan; here it only has to be fit for replay.
#pragma once

#include <vector>

#include "core/network/network.h"
#include "core/plan/plan.h"
#include "core/plan/ranks.h"
#include "replay/replay.h"

namespace foreshard::player {

// All throw an Error that names what is wrong, where, the value found and what was expected.
void check_playable(const Plan& plan);                                            // call it before Ranks is made of the plan
void check_placed(const Plan& plan, const Ranks& ranks, const Network& network);  // the ranks fit the devices of the cluster

}  // namespace foreshard::player
