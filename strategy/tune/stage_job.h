// A stage as a job for the planners of strategy/residency/tensor_offload.h: times and memory of its operators, from a plan. Internal to
// strategy/.
#pragma once

#include "core/cluster/cluster.h"
#include "core/plan/plan.h"
#include "strategy/resolve/held_values.h"

namespace foreshard {

// Fills the times, the memory beside the values and the link of `held`, the values of `stage`, from `plan`, in which some value of the
// stage moves to `home`; `graph` names the layers.
void time_job(HeldValues& held, const Plan& plan, const Cluster& cluster, const OpGraph& graph, int stage, Space home);

}  // namespace foreshard
