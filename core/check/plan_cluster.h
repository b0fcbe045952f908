// A saved plan meets a cluster: are its GPUs the ones that the plan was made for?
#pragma once

#include <string>

#include "core/cluster/cluster.h"
#include "core/plan/plan.h"

namespace foreshard {

// "plan is for a100-80, cluster dgx-h100 has h100-80", or the same of the number of GPUs. Empty: the plan can stand there.
// The plan need not be sound.
std::string gpus_differ(const Plan& plan, const Cluster& cluster);

}  // namespace foreshard
