// Choices for experts that a search tries for its best strategies only. Internal to strategy/.
#pragma once

#include <vector>

#include "strategy/search/search_space.h"

namespace foreshard {

// Variants of the strategy at `point`: with other dispatchers that could be faster there; with recomputation of the experts' products
// alone, if `best` (the best of its family) recomputes; in cells with delayed weight gradients. All combinations, without the strategy
// itself.
std::vector<Strategy> variants_of_experts(const Model& model, const Cluster& cluster, const SearchOptions& options,
                                          const SearchSpace& space, const Strategy& best, const Point& point);

}  // namespace foreshard
