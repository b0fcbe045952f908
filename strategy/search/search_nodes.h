// Searches the use of fewer nodes than a cluster has: where the network is slow, an iteration on some of the nodes may be faster than
// on all. Internal to strategy/.
#pragma once

#include "strategy/search/search_refine.h"

namespace foreshard {

// Tries half of the nodes, then the next smaller divisors of their number down to one, and adds what it finds to `result`, the result
// on all nodes. Ends at the first number of nodes whose GPUs would be slower than the winner even at nine tenths of their peak
// FLOP/s. Each try refines two families; only where one of these beats the winner is the whole space on that many nodes searched.
// Transformers, one kind of node and Objective::Time only; else `result` stays as it is.
void search_fewer_nodes(const FurtherSearch& search, SearchResult& result);

}  // namespace foreshard
