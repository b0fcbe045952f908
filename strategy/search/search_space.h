// The space of a search: grids of ranks, and the points of each. Internal to strategy/.
#pragma once

#include <vector>

#include "strategy/schedule/schedule.h"
#include "strategy/search/search.h"

namespace foreshard {

struct SearchSpace {
  std::vector<Point> grids = {};  // with tp, cp, pp, dp, ep and etp set, the rest at its default
  bool experts = false;           // the model has experts
  std::int64_t batch = 0;         // sequences of the global batch
  int layers = 0;                 // of the model; 0: a layer list, every number of stages is tried
  std::vector<RecomputeKind> recomputes = {};
  std::vector<std::int8_t> zeros = {};
  std::vector<bool> sequence_parallels = {};
  std::vector<Overlap> overlaps = {};
  bool orders = false;       // rank orders are tried
  bool some_layers = false;  // full recomputation of some layers of a stage is tried
  // RecomputeKind::Each stands for --recompute best: chosen per layer to fill memory.
  bool best = false;
  std::vector<int> zero_groups = {};             // ranks of a ZeRO group; empty: all divisors of dp
  bool uneven = false;                           // numbers of stages that do not divide the layers are tried
  int recompute_layers = 0;                      // Point::recompute_layers of all points, unless some_layers is set
  std::vector<std::int64_t> micro_batches = {};  // sequences; empty: all divisors of a replica's batch
  std::vector<int> virtual_stages = {};          // per rank; empty: all divisors of a rank's layers
  // Empty: all but those that are tried on request only; and those with cells, where they hide all-to-alls of experts.
  std::vector<Schedule> schedules = {};
  bool cells = false;        // cells overlap the communication of operators, although `overlaps` do not
  bool only_cells = false;   // no other schedule is tried
  int microbatch_group = 0;  // ScheduleShape::g of interleaved schedules
  ScheduleLists lists = {};  // of a schedule file; empty: no file, or its order is still to be found
};

bool is_fixed(const SearchOptions& options, const char* path);  // by SearchOptions::fixed

SearchSpace search_space(const Model& model, const Cluster& cluster, const SearchOptions& options);

// The choices inside a grid, or at a point, in the order in which they are tried. Choices that make no difference there are left out:
// overlap without replicas or a pipeline, ZeRO without replicas.
std::vector<std::int64_t> micro_batches(const SearchSpace& space, const Point& grid);
std::vector<int> virtual_stages(const SearchSpace& space, const Point& grid);
// Indices into rank_orders() under which neighbours of a tensor group share a node; of orders that place the ranks alike only one.
std::vector<std::int8_t> rank_orders_for(const SearchSpace& space, const Point& grid, const Cluster& cluster);
std::vector<int> recompute_layers(const SearchSpace& space, const Point& point);
std::vector<Overlap> overlaps_for(const SearchSpace& space, const Point& point);
// Ranks of a ZeRO group; 0: all replicas in one group. Empty: the size that was asked for does not divide the replicas.
std::vector<int> zero_groups_for(const SearchSpace& space, const Point& grid);
std::vector<std::int8_t> zeros_for(const SearchSpace& space, const Point& point);
std::vector<Schedule> schedules_for(const SearchSpace& space, const Point& point);

}  // namespace foreshard
