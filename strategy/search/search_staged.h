// Searches strategies whose stages have degrees of their own, after a search has found its best uniform strategy (equal degrees on all
// stages). It refines the proposals of strategy/tune/hybrid_stages.h for every micro-batch and kind of recomputation that is open, and
// improves the best of them by small steps. Internal to strategy/.
#pragma once

#include <functional>
#include <optional>
#include <vector>

#include "strategy/search/search_costs.h"

namespace foreshard {

// Whether such stages are searched: the objective is time or the Pareto front, and neither fixed options, nor the framework, nor
// differing nodes rule them out.
bool tries_stages(const Cluster& cluster, const SearchOptions& options);

struct StagedSearch {
  const Model& model;
  const Cluster& cluster;
  const SearchOptions& options;
  const SearchSpace& space;
  const SearchCosts* costs = nullptr;    // null: the model cannot be screened
  const std::vector<Candidate>& ranked;  // the uniform strategies, best first; not empty
  std::function<bool()> stopped = {};
  // Calls work(index) for all indices below `count`, on any thread.
  std::function<void(std::size_t count, const std::function<void(std::size_t)>& work)> in_parallel = {};
  // Refines a strategy; empty: it does not fit. Any thread may call it.
  std::function<std::optional<Candidate>(const Strategy&, const Point&)> refined = {};
};

struct StagedResult {
  // The strategies that are faster than the best uniform one: of every micro-batch and schedule the fastest.
  std::vector<Candidate> faster = {};
  int refined = 0;  // strategies that were refined and fit
};
StagedResult search_stages(const StagedSearch& search);

}  // namespace foreshard
