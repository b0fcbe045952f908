// Stages that share a NIC: where a node has fewer of them than GPUs, collectives of different pipeline stages cross it at the same
// time, and each has only a part of it (docs/search.md, "Refine"). Internal to strategy/.
#pragma once

#include <functional>
#include <vector>

#include "strategy/estimate.h"
#include "strategy/estimate_alone.h"
#include "strategy/schedule.h"

namespace foreshard {

// Whether collectives of different roles cross a link in the same direction.
bool stages_meet(const Plan& plan, AloneTimes& alone);

// `alone`: as measured one role at a time. Plays moments in the middle of the run with all roles together, at the times that the
// schedule's recurrence gives them, and does so again with the durations that come of it.
std::vector<StageDurations> measure_together(
    const Plan& plan, AloneTimes& times, const std::vector<StageDurations>& alone,
    const std::function<ScheduleTiming<double>(const std::vector<StageDurations>&)>& timing_of);

// The actions of a role that its schedule lists, in that order.
std::vector<std::size_t> listed_actions(const Role& role);

}  // namespace foreshard
