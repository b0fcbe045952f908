// Fewer whole nodes than a cluster has: where the network is slow a step on some of them may be faster than on all. Internal to
// strategy/.
#pragma once

#include <functional>

#include "strategy/search/search.h"

namespace foreshard {

struct NodesSearch {
  const Model& model;
  const Cluster& cluster;
  const SearchOptions& options;
  // A search that uses all GPUs of a cluster.
  std::function<std::variant<SearchResult, Infeasible>(const Cluster& cluster, const SearchOptions& options)> on_all;
};

// Looks at half of the nodes, a third, .. one, until even nine tenths of the peak of their GPUs are slower than the winner of `result`, which is of
// all nodes; adds what it finds. Where fewer nodes win, all of their space is searched. Transformers only.
void search_fewer_nodes(const NodesSearch& search, SearchResult& result);

}  // namespace foreshard
