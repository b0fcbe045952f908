// Offload to host memory in a search. It is tried only where the memory of the devices is the limit. Internal to strategy/.
#pragma once

#include <optional>

#include "strategy/search/search_refine.h"

namespace foreshard {

// For when nothing fits on the devices: tries optimizer states in host memory, then parameters and gradients too, then the inputs of
// layers too, and returns the search with the first of these under which something fits. Empty: nothing fits under any, the user or
// the framework decides about offload, or the search was stopped.
std::optional<SearchResult> search_offloaded(const FurtherSearch& search);

// For when something fits: tries optimizer states in host memory for at most two points, and adds those that beat the winner to the
// ranking. The points are the one that would be faster by the screen if memory were no limit, and the winner without its
// recomputation. This lowers a few plans; it does not search again.
void offload_too(const FurtherSearch& search, SearchResult& result);

}  // namespace foreshard
