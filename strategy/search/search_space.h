// The space of a search: grids of ranks, and the points of each. Internal to strategy/.
#pragma once

#include <vector>

#include "strategy/schedule/schedule.h"
#include "strategy/search/search.h"

namespace foreshard {

struct SearchSpace {
  std::vector<Point> grids = {};  // tp, cp, pp, dp, ep, etp set
  bool experts = false;           // the model has some
  std::int64_t batch = 0;
  int layers = 0;  // 0: not known, every number of stages is tried
  std::vector<RecomputeKind> recomputes = {};
  std::vector<std::int8_t> zeros = {};
  std::vector<bool> sequence_parallels = {};
  std::vector<Overlap> overlaps = {};
  bool orders = false;                           // rank orders are tried
  bool some_layers = false;                      // so is full recomputation of some layers of a stage
  bool best = false;                             // RecomputeKind::Each is --recompute best: of each layer what fills memory
  std::vector<int> zero_groups = {};             // empty: all divisors of dp
  bool uneven = false;                           // stages that do not divide the layers
  int recompute_layers = 0;                      // when they are not: of full recomputation
  std::vector<std::int64_t> micro_batches = {};  // empty: all divisors
  std::vector<int> virtual_stages = {};          // likewise
  std::vector<Schedule> schedules = {};
  int microbatch_group = 0;
  ScheduleLists lists = {};  // of a schedule file; empty where its order is still to be found, too
};

bool is_fixed(const SearchOptions& options, const char* path);  // by SearchOptions::fixed

SearchSpace search_space(const Model& model, const Cluster& cluster, const SearchOptions& options);

// Choices inside a grid, in the order in which they are tried.
std::vector<std::int64_t> micro_batches(const SearchSpace& space, const Point& grid);
std::vector<int> virtual_stages(const SearchSpace& space, const Point& grid);
// Rank orders under which neighbours of a tensor group still share a node, one of each kind that differs here.
std::vector<std::int8_t> rank_orders_for(const SearchSpace& space, const Point& grid, const Cluster& cluster);
std::vector<int> recompute_layers(const SearchSpace& space, const Point& point);
// Those that differ at this point: with replicas, with a pipeline, with shards.
std::vector<Overlap> overlaps_for(const SearchSpace& space, const Point& point);
// 0: one group. Empty: those that are asked for do not divide the replicas.
std::vector<int> zero_groups_for(const SearchSpace& space, const Point& grid);
std::vector<std::int8_t> zeros_for(const SearchSpace& space, const Point& point);
std::vector<Schedule> schedules_for(const SearchSpace& space, const Point& point);

}  // namespace foreshard
