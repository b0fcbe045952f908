// Isolated costs of every instruction of a plan: what the simulator plays and `calibrate` replaces.
#pragma once

#include "core/cluster.h"
#include "core/plan.h"

namespace foreshard {

// Fills plan.costs for the device kinds of its roles. A collective or exchange in a shared segment takes the latencies of the
// first role that runs it.
void cost_plan(Plan& plan, const Cluster& cluster);

}  // namespace foreshard
