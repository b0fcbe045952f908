// Builds the cluster that a row of published measurements describes by its GPU, links and counts.
#pragma once

#include <string>
#include <vector>

#include "core/cluster/cluster.h"
#include "validation/measured.h"

namespace foreshard {

// A cluster of `gpu` (a name in topologies/gpus) with enough nodes for `gpus` of them. Adds to `assumed` the columns that the row
// does not state and a default was taken for.
Cluster measured_cluster(const MeasuredRow& row, const std::string& gpu, std::int64_t gpus, std::vector<std::string>& assumed);

}  // namespace foreshard
