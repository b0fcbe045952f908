// The memory part of a Summary: one row per role, and whether the plan fits its devices.
#pragma once

#include <vector>

#include "core/cluster/cluster.h"
#include "core/result/result.h"
#include "core/result/summary.h"

namespace foreshard {

// [role], device memory. Peaks come from the class of the role with the largest one; without curves (a plan that was
// not played) they stay 0 and the arena comes from the plan.
std::vector<StageMemory> memory_rows(const Result& result);

// The one meaning of "peak" that is shown: what lives on a device of the stage at its fullest moment, the framework's own memory
// included. The parts sum to the peak.
Bytes peak_of(const Summary& summary, const StageMemory& stage);
LiveBytes peak_parts(const Summary& summary, const StageMemory& stage);
Bytes usable(const Summary& summary);                      // capacity less the reserve; 0: nothing is known of the device
const StageMemory* fullest_stage(const Summary& summary);  // by peak, the first of equals; null: no stage

// Fills memory, capacity, reserve, framework, fits_margin, and, when the margin is negative, feasible and its reason.
void add_memory(Summary& summary, const Result& result, const Cluster& cluster);

}  // namespace foreshard
