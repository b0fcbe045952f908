// Host memory in a search: what lies there between two uses is varied where the memory of the devices binds. Internal to strategy/.
#pragma once

#include <functional>
#include <optional>

#include "strategy/search/search.h"

namespace foreshard {

struct HostMemorySearch {
  const Model& model;
  const Cluster& cluster;
  const SearchOptions& options;
  std::function<std::variant<SearchResult, Infeasible>(const Cluster& cluster, const SearchOptions& options)> on_all;
};

// Nothing fits on the devices: the ranking of the first way under which something does, of optimizer states in host memory, with them
// parameters and gradients of layers, with them the inputs of layers. Empty: nothing does, or the user said what lies where.
std::optional<SearchResult> search_offloaded(const HostMemorySearch& search);

// Something fits, but memory rules out what would be faster, or the best one redoes layers: these points, with optimizer states in host
// memory, take their places in the ranking. A few plans, not a search.
void offload_too(const HostMemorySearch& search, SearchResult& result);

}  // namespace foreshard
