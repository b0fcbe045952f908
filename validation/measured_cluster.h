// The cluster that a row of published measurements describes by GPU, links and counts.
#pragma once

#include <string>
#include <vector>

#include "core/cluster/cluster.h"
#include "validation/measured.h"

namespace foreshard {

// Enough nodes for `gpus`; adds to `assumed` the columns that the row does not state.
Cluster measured_cluster(const MeasuredRow& row, const std::string& gpu, std::int64_t gpus, std::vector<std::string>& assumed);

}  // namespace foreshard
