// The memory part of a Summary: one row per role, and whether the plan fits its devices.
#pragma once

#include <vector>

#include "core/cluster/cluster.h"
#include "core/result/result.h"
#include "core/result/summary.h"

namespace foreshard {

// [role], device memory. `peak` and `live_peak` are those of the class of the role with the largest live peak; without memory
// curves (a plan that was not replayed) they stay 0. The arena is the plan's.
std::vector<StageMemory> memory_rows(const Result& result);

// "Peak" as all outputs show it: the live peak of a device of the stage plus framework memory. The parts, one per category, sum
// to the peak.
Bytes peak_of(const Summary& summary, const StageMemory& stage);
LiveBytes peak_parts(const Summary& summary, const StageMemory& stage);
Bytes usable(const Summary& summary);                      // device capacity less the reserve; 0: the capacity is unknown
const StageMemory* fullest_stage(const Summary& summary);  // with the largest peak, the first of equals; null: no stage

// Sets the verdict, and what follows from it: `feasible`, `infeasible_reason`.
void judge(Summary& summary, const Verdict& verdict);
// Sets `memory` and `fit`, for the role with the smallest margin, and the verdict by the plan's arena.
void add_memory(Summary& summary, const Result& result, const Cluster& cluster);

}  // namespace foreshard
