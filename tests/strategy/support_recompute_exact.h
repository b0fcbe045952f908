// The best schedule of recomputation by a slow, obvious way, beside which the greedy one is held.
#pragma once

#include <cstdint>

#include "strategy/recompute/recompute_graph.h"

namespace foreshard {

struct ExactSchedule : GraphSchedule {
  std::int64_t visited = 0;  // steps from one kept set to the next that were looked at
};

// Branch and bound over what is kept from stage to stage, exact, for graphs of about a dozen nodes (at most 30).
// After stage t with a set S kept no schedule needs fewer seconds than all later nodes once, and those nodes again that later ones
// read, that are not in S, with all they are made of up to S. The greedy choice is the first bound; a set that was reached in fewer
// seconds before is not looked at again.
ExactSchedule recompute_exact(const std::vector<RecomputeNode>& graph, int budget);

// Positions in the order of the nodes after which a single value is all that later nodes read: the articulation points of the
// graph, where it falls into a chain of blocks (for recompute_chain).
std::vector<int> chain_points(const std::vector<RecomputeNode>& graph);

}  // namespace foreshard
