// What screening reads: the costs of every grid of ranks and of every shape of a space, measured once each, by any thread, in an
// order that jumps all over the space. So whatever has been measured when a search is interrupted can be screened. Internal to
// strategy/.
#pragma once

#include <array>
#include <deque>
#include <functional>
#include <map>
#include <mutex>
#include <optional>
#include <tuple>
#include <utility>
#include <vector>

#include "strategy/search/search_space.h"

namespace foreshard {

// 0 .. count-1, each once, neighbours far apart.
std::vector<std::size_t> scattered(std::size_t count);

class SearchCosts {
 public:
  // All must outlive it.
  SearchCosts(const Screen& screen, const SearchSpace& space, const Model& model, const Cluster& cluster,
              const SearchOptions& options);

  std::size_t jobs() const { return jobs_.size(); }
  // Each once; different ones by different threads. What is not done when `stop` says so stays as if it had not begun.
  void measure(std::size_t job, const std::function<bool()>& stop = {});

  // Null: shapes that cannot be cut so, or not measured yet.
  const ShapeCosts* shape(const Point& point) const;
  const ShapeCosts* find(const Point& point) const;  // likewise of shapes that no point of the space may have
  // After an interrupt, by one thread: measures grid by grid, a few, with all that each needs, until `enough` or `stop` says so.
  void measure_some(const std::function<bool(std::size_t grid)>& enough, const std::function<bool()>& stop);
  bool measured(std::size_t grid) const { return !grids_[grid].empty(); }
  const GridCosts& grid(std::size_t grid, const Point& point) const;  // of one that is measured

  // Of `--recompute best` at a point whose time with everything kept is `all`: one of two ways for each layer to keep its values, on each rank
  // the smaller one for the fewest first layers that make room, of all pairs of ways the fastest that fits; where none does, the
  // smallest. Ways between keeping all and redoing all are measured when they are first asked for. Any thread; space.best.
  Screened best(const Point& point, const Screened& all, const GridCosts& grid) const;

 private:
  static constexpr std::size_t kWays = 2;  // that no other strategy has
  struct Ways {                            // of a shape
    std::once_flag once = {};
    std::array<std::optional<ShapeCosts>, kWays> costs = {};
  };
  using ShapeKey = std::tuple<int, int, int, int, int, std::int64_t, bool, RecomputeKind>;
  struct Job {
    std::size_t grid = 0;
    std::optional<std::size_t> shape = {};  // empty: the grid itself
  };
  static ShapeKey key(const Point& point);
  void add(const Point& shape, std::size_t grid);
  std::vector<const ShapeCosts*> ways(const Point& point) const;  // about those that keep most first

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

// The shapes of a grid with its micro-batch set: rank order, sequence parallelism, recomputation.
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
