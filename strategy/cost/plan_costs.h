// Isolated costs of every instruction of a plan: what the simulator plays and `calibrate` replaces.
#pragma once

#include "core/cluster/cluster.h"
#include "core/plan/plan.h"
#include "core/profile/machine_profile.h"
#include "strategy/cost/framework_preset.h"

namespace foreshard {

// Fills plan.costs for the device kinds of its roles. A collective or exchange in a shared segment takes the latencies of the
// first role that runs it. An action that the host issues more slowly than the device runs it takes the host's time: its
// computes are stretched evenly.
// Where there is a profile, its times and bandwidths go before all this for the device kind that it is about.
void cost_plan(Plan& plan, const Cluster& cluster, const FrameworkPreset& preset = {}, const MachineProfile* profile = nullptr);

}  // namespace foreshard
