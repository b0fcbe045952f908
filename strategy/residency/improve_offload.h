// Improves an offload plan (plan_offload.h) by local search.
#pragma once

#include "strategy/residency/plan_offload.h"

namespace foreshard {

// Applies the best of all small changes, repeatedly, until none helps. A plan is better if its peak exceeds the budget by fewer bytes, or,
// with equal excess, if its step is faster. A small change gives one region another choice; if the region that is to fetch it already
// fetches another region, that one gets another choice, too. The algorithm is ours. O(regions window^2) timings per change. `window` as
// OffloadSearch::window.
OffloadPlan improve_offload(const OffloadJob& job, Bytes budget, int window, OffloadPlan plan);

}  // namespace foreshard
