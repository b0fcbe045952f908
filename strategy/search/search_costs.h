// The costs that screening reads: those of every grid of ranks and of every shape of a space. Each is measured once, by any thread,
// in an order scattered over the space, so that an interrupted search can screen whatever has been measured by then.
//   grid   an element of SearchSpace::grids: tp, cp, pp, dp, ep, etp
//   shape  what decides the costs of a layer on one rank: tp, cp, ep, etp, micro-batch, sequence parallelism, recomputation, and
//          how far apart the ranks of a tensor group are
// Internal to strategy/.
#pragma once

#include <array>
#include <deque>
#include <functional>
#include <map>
#include <optional>
#include <tuple>
#include <utility>
#include <vector>

#include "core/base/once.h"
#include "strategy/search/search_space.h"

namespace foreshard {

// The numbers 0 .. count-1 in an order in which consecutive numbers are far apart.
std::vector<std::size_t> scattered(std::size_t count);

class SearchCosts {
 public:
  // All arguments must outlive it.
  SearchCosts(const Screen& screen, const SearchSpace& space, const Model& model, const Cluster& cluster,
              const SearchOptions& options);

  // A job measures one grid or one shape.
  std::size_t jobs() const { return jobs_.size(); }
  Point point_of(std::size_t job) const;  // one that the job is measured for, without its schedule
  // Call it once per job; different threads may measure different jobs. A grid that is incomplete when `stop` returns true stays
  // unmeasured.
  void measure(std::size_t job, const std::function<bool()>& stop = {});

  // Null: the model cannot be divided this way, or the shape is not measured yet. The point must be of the space.
  const ShapeCosts* shape(const Point& point) const;
  // The same for any point; null also where no point of the space has its shape.
  const ShapeCosts* find(const Point& point) const;
  // For one thread, after an interrupt: measures a grid with all its shapes, then the next, until `enough` (called after each grid) or
  // `stop` returns true, or 300 jobs are done.
  void measure_some(const std::function<bool(std::size_t grid)>& enough, const std::function<bool()>& stop);
  bool measured(std::size_t grid) const { return !grids_[grid].empty(); }
  const GridCosts& grid(std::size_t grid, const Point& point) const;  // only of a measured grid

  // Time and memory of `point` with `--recompute best`; `all` is the same point with every value kept. Considers all pairs of ways (which
  // values a layer keeps, which it recomputes). On each rank the first layers, as few as make room, take the way that keeps less, the other
  // layers the way that keeps more. Returns the fastest pair that fits; where none fits, the full recomputation of every layer. Ways
  // between keeping all and recomputing all are measured at first use. Any thread; only where SearchSpace::best is set.
  Screened best(const Point& point, const Screened& all, const GridCosts& grid) const;

 private:
  static constexpr std::size_t kWays = 2;  // ways to keep values that only --recompute best uses
  struct Ways {                            // their costs for one shape
    Once once = {};
    std::array<std::optional<ShapeCosts>, kWays> costs = {};
  };
  using ShapeKey = std::tuple<int, int, int, int, int, std::int64_t, bool, RecomputeKind>;
  struct Job {
    std::size_t grid = 0;
    std::optional<std::size_t> shape = {};  // empty: the grid itself
  };
  static ShapeKey key(const Point& point);
  void add(const Point& shape, std::size_t grid);
  std::vector<const ShapeCosts*> ways(const Point& point) const;  // roughly in the order of the bytes they keep, most first

  const Screen& screen_;
  const SearchSpace& space_;
  const Cluster& cluster_;
  std::vector<Job> jobs_ = {};
  std::vector<std::map<std::pair<std::int8_t, int>, GridCosts>> grids_ = {};  // [grid]{rank order, ZeRO group}
  std::map<ShapeKey, std::size_t> shape_of_ = {};
  std::vector<Point> points_ = {};                      // [shape]
  std::vector<std::optional<ShapeCosts>> shapes_ = {};  // [shape]
  std::vector<Screen> screens_ = {};                    // [way]
  mutable std::deque<Ways> ways_ = {};                  // [shape]
};

// Calls visit(point) for every shape of a grid. `point` has the degrees and the micro-batch; visit gets it with each rank order,
// sequence parallelism and kind of recomputation of the space.
template <class Visit>
void for_each_shape(const SearchSpace& space, const Cluster& cluster, Point point, Visit visit) {
  for (const std::int8_t order : rank_orders_for(space, point, cluster))
    for (const bool sp : space.sequence_parallels) {
      if (sp && point.tp == 1) continue;
      for (const RecomputeKind recompute : space.recomputes) {
        point.order = order, point.sequence_parallel = sp, point.recompute = recompute;
        visit(point);
      }
    }
}

}  // namespace foreshard
