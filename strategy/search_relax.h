// What to give up when a search finds nothing: each constraint alone is loosened, and those that make room are told with the
// best strategy that then fits.
#pragma once

#include <string>
#include <vector>

#include "strategy/search.h"

namespace foreshard {

// Nearest first: options that were fixed, a limit on tp, the framework, the reserve, the batch, more nodes. "without --fix tp=3:
// tp 4, pp 1, dp 1, 120 ms". Empty: none helps alone.
std::vector<std::string> relaxations(const Model& model, const Cluster& cluster, const SearchOptions& options);

}  // namespace foreshard
