// Checks that a cluster has the GPUs that a saved plan was made for.
#pragma once

#include <string>

#include "core/cluster/cluster.h"
#include "core/plan/plan.h"

namespace foreshard {

// Says how the GPUs differ: "plan is for a100-80, cluster dgx-h100 has h100-80", or the same with numbers of GPUs. Empty if the cluster has
// all kinds of GPUs that the plan names, and enough of them. check_plan need not have accepted the plan.
std::string gpus_differ(const Plan& plan, const Cluster& cluster);

}  // namespace foreshard
