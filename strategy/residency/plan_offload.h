// Decides which regions of a chain are offloaded between their forward and their backward, and when they are fetched again, so that a step
// is fast within a memory budget: the greedy planner of hpcaitech/ColossalAI, colossalai/auto_parallel/offload (solver.py), changed as
// described below. See docs/offload-planning.md.
#pragma once

#include <variant>

#include "core/base/error.h"
#include "strategy/residency/offload_timing.h"

namespace foreshard {

struct OffloadPlan {
  std::vector<RegionChoice> choices = {};  // [region]
  OffloadTiming timing = {};               // by the planner's own model, offload_timing
  bool operator==(const OffloadPlan&) const = default;
};

struct OffloadSearch {
  // A region is fetched at the backward of one of this many regions after it; 0: only synchronously, no upload overlaps a backward.
  int window = 3;
};

// Begins with keeping every region. Repeatedly offloads the one region, with the fetch, that saves the most byte-seconds per second by
// which the step gets longer, until the peak is within the budget. If no region is left to offload, makes a prefetched region synchronous.
// Then calls improve_offload. Does all this twice, with synchronous choices only as a last resort and with synchronous choices at any time,
// and returns the faster plan. Its peak is never above `budget`. Infeasible, with the smallest peak that was found: no plan fits. The
// greedy part takes O(regions^2 window) timings.
std::variant<OffloadPlan, Infeasible> plan_offload(const OffloadJob& job, Bytes budget, const OffloadSearch& search = {});

}  // namespace foreshard
