// A choice of offloaded regions made better in small steps.
#pragma once

#include "strategy/residency/plan_offload.h"

namespace foreshard {

// Takes the best of all small changes, again and again, until none helps: first less above the budget, then a faster step. A small change
// gives one region another choice; where the region that should fetch it already fetches another one, that one gets another choice, too.
// Ours. O(regions window^2) timings each time.
OffloadPlan improve_offload(const OffloadJob& job, Bytes budget, int window, OffloadPlan plan);

}  // namespace foreshard
