// The memory part of a Summary: one row per role, and whether the plan fits its devices.
#pragma once

#include <vector>

#include "core/cluster.h"
#include "core/result.h"
#include "core/summary.h"

namespace foreshard {

// [role], device memory. Peaks come from the class of the role with the largest one; without curves (a plan that was
// not played) they stay 0 and the arena comes from the plan.
std::vector<StageMemory> memory_rows(const Result& result);

// Fills memory, capacity, reserve, framework, fits_margin, and, when the margin is negative, feasible and its reason.
void add_memory(Summary& summary, const Result& result, const Cluster& cluster);

}  // namespace foreshard
