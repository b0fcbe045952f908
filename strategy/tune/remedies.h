// What would make a strategy fit that does not: single changes first, then two together.
#pragma once

#include <string>
#include <vector>

#include "core/cluster/cluster.h"
#include "core/model/model.h"
#include "core/strategy/strategy.h"

namespace foreshard {

// Each remedy is the option to set and the memory that results: "--recompute full: 41.3 GiB on stage 0 of 80.0 GiB". Every one
// was lowered and fits. Empty: none of those tried does.
std::vector<std::string> remedies(const Model& model, const Cluster& cluster, const Strategy& strategy, std::size_t most = 3);

}  // namespace foreshard
