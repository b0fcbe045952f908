// Strategies whose stages have degrees of their own, after a search has found its best uniform one: proposals of hybrid_stages for every
// micro-batch and way to recompute that is open, refined, and small steps from the best. Internal to strategy/.
#pragma once

#include <functional>
#include <optional>
#include <vector>

#include "strategy/search/search_costs.h"

namespace foreshard {

// Whether the objective is time and nothing that is fixed, nor the framework, forbids such stages.
bool tries_stages(const Cluster& cluster, const SearchOptions& options);

struct StagedSearch {
  const Model& model;
  const Cluster& cluster;
  const SearchOptions& options;
  const SearchSpace& space;
  const SearchCosts* costs = nullptr;    // null: what cannot be screened
  const std::vector<Candidate>& ranked;  // uniform ones, best first; one at least
  std::function<bool()> stopped = {};
  // work(index) for all; any thread.
  std::function<void(std::size_t count, const std::function<void(std::size_t)>& work)> in_parallel = {};
  std::function<std::optional<Candidate>(const Strategy&, const Point&)> refined = {};  // any thread
};

struct StagedResult {
  std::vector<Candidate> faster = {};  // than the best uniform one, the fastest of every micro-batch and schedule
  int refined = 0;
};
StagedResult search_stages(const StagedSearch& search);

}  // namespace foreshard
