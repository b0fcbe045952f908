// Screening: the families of a space, grid by grid, each with the best of its points. Internal to strategy/.
#pragma once

#include <atomic>

#include "strategy/search_costs.h"
#include "strategy/search_framework.h"
#include "strategy/search_kept.h"

namespace foreshard {

class Screening {
 public:
  // All must outlive it. Without `screen` and `costs` (models of other shapes) every point is kept.
  Screening(const Cluster& cluster, const SearchOptions& options, const SearchSpace& space, const Screen* screen,
            const SearchCosts* costs);

  // All points of a grid; any thread, each with a tally of its own. No more than about `most` of them once one has been found that seems to fit.
  void screen(std::size_t grid, Tally& tally, std::int64_t most) const;
  bool found() const { return found_; }  // any point that seems to fit

 private:
  // Of a point; with full recomputation of as many layers as do not fit, without it (`shape`) and with it.
  struct Costs {
    const ShapeCosts* shape = nullptr;
    const ShapeCosts* redone = nullptr;
    bool best = false;  // of each layer what fills memory; `shape` is without any
  };
  void screen_family(const Point& start, std::size_t grid, std::int64_t& order, Tally& tally) const;
  void screen_rest(Point point, const Costs& costs, std::size_t grid, std::int64_t& order, Family& family, Tally& tally) const;
  void look_at(const Point& point, const Costs& costs, const GridCosts* grid, std::int64_t order, Family& family,
               Tally& tally) const;
  bool screen_best(Kept& kept, const GridCosts& grid, Tally& tally, const Enough& enough) const;
  const BestFamilies& best_of(const Tally& tally, bool filled) const { return filled && apart_ ? tally.filled : tally.best; }

  const Cluster& cluster_;
  const SearchOptions& options_;
  const SearchSpace& space_;
  const Screen* screen_;
  const SearchCosts* costs_;
  std::optional<Runner> runner_;
  bool apart_;  // --recompute best is one of several, and has families of its own
  mutable std::atomic<bool> found_ = false;
};

}  // namespace foreshard
