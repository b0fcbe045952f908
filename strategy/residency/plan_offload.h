// Which regions of a chain are sent away between their forward and their backward, and when they are fetched again, so that a step is fast
// within a memory budget: the greedy planner of hpcaitech/ColossalAI, colossalai/auto_parallel/offload (solver.py), with changes of ours.
#pragma once

#include <variant>

#include "core/base/error.h"
#include "strategy/residency/offload_timing.h"

namespace foreshard {

struct OffloadPlan {
  std::vector<RegionChoice> choices = {};
  OffloadTiming timing = {};  // in the planner's own model
  bool operator==(const OffloadPlan&) const = default;
};

struct OffloadSearch {
  int window =
      3;  // a region is fetched by one of this many regions behind it; 0: only synchronously, no upload runs beside a backward
};

// From keeping everything, takes again and again the one choice that saves the most byte-seconds for each second that the step gets longer,
// until the peak is within the budget. Where no choice is left, a prefetched region becomes a synchronous one. Then improve_offload. Two
// searches, one that takes synchronous choices only where no other is left and one that takes them at any time; the faster plan is the
// answer. Never over the budget. Infeasible: says the smallest peak that was met. O(regions^2 window) timings each for the greedy part.
std::variant<OffloadPlan, Infeasible> plan_offload(const OffloadJob& job, Bytes budget, const OffloadSearch& search = {});

}  // namespace foreshard
