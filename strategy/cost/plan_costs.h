// Isolated costs of every instruction of a plan: the simulator reads them, and a machine profile replaces them where it has measurements.
#pragma once

#include "core/cluster/cluster.h"
#include "core/plan/plan.h"
#include "core/profile/machine_profile.h"
#include "strategy/cost/framework_preset.h"

namespace foreshard {

// Fills plan.costs with one table per device kind of the plan's roles. A segment that several roles share takes the costs of the first of
// them. Where the host issues the instructions of a segment more slowly than the device runs them, the computes of the segment are
// stretched evenly to the host's time. For the device kind of `profile`, its measured times and bandwidths replace these costs, and its
// learned factors multiply the result.
void cost_plan(Plan& plan, const Cluster& cluster, const FrameworkPreset& preset = {}, const MachineProfile* profile = nullptr);

}  // namespace foreshard
