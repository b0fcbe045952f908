// What `calibrate` executes: small models of every family under every way of splitting them, of sizes that no shipped model has.
#pragma once

#include <vector>

#include "core/cluster/cluster.h"
#include "core/plan/plan.h"

namespace foreshard {

// Plans of one or two ranks, each a few milliseconds to tenths of seconds a step. `quick`: a small part of them, the large ones
// left out.
std::vector<Plan> calibration_probes(const Cluster& cluster, const std::vector<DType>& dtypes, bool quick);

}  // namespace foreshard
