// The space of a search: grids of ranks, and the points of each. Internal to strategy/.
#pragma once

#include <vector>

#include "strategy/search.h"

namespace foreshard {

struct SearchSpace {
  std::vector<Point> grids = {};  // tp, cp, pp, dp set
  std::int64_t batch = 0;
  int layers = 0;  // 0: not known, every number of stages is tried
  std::vector<RecomputeKind> recomputes = {};
  std::vector<std::int8_t> zeros = {};
  std::vector<bool> sequence_parallels = {}, overlaps = {};
  std::vector<std::int64_t> micro_batches = {};  // empty: all divisors
  std::vector<int> virtual_stages = {};          // likewise
  std::vector<Schedule> schedules = {};
};

SearchSpace search_space(const Model& model, const Cluster& cluster, const SearchOptions& options);

// Choices inside a grid, in the order in which they are tried.
std::vector<std::int64_t> micro_batches(const SearchSpace& space, const Point& grid);
std::vector<int> virtual_stages(const SearchSpace& space, const Point& grid);
std::vector<Schedule> schedules_for(const SearchSpace& space, const Point& point);
std::vector<std::int64_t> divisors(std::int64_t n);

}  // namespace foreshard
