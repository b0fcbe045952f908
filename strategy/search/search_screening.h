// Screening: the families of a space, grid by grid, each with the best of its points. Internal to strategy/.
#pragma once

#include <atomic>

#include "strategy/search/search_costs.h"
#include "strategy/search/search_framework.h"
#include "strategy/search/search_kept.h"

namespace foreshard {

class Screening {
 public:
  // All must outlive it. Without `screen` and `costs` (models of other shapes) every point is kept.
  Screening(const Cluster& cluster, const SearchOptions& options, const SearchSpace& space, const Screen* screen,
            const SearchCosts* costs);

  // All points of a grid; any thread, each with a tally of its own. No more than about `most` of them once one has been found that seems to fit.
  void screen(std::size_t grid, ScreeningTotals& tally, std::int64_t most) const;
  bool found() const { return found_; }  // any point that seems to fit

 private:
  struct Costs {
    const ShapeCosts* shape = nullptr;   // with full recomputation of as many layers as do not fit: without it
    const ShapeCosts* redone = nullptr;  // and with it
    bool best = false;                   // of each layer what fills memory; `shape` is without any
    const ShapeCosts* kept = nullptr;    // of the same point with nothing redone, where that is another one of the space
  };
  struct Item {
    Point point = {};
    Costs costs = {};
    const GridCosts* grid = nullptr;
    std::int64_t order = 0;
  };
  // Families of the same points, without recompute best and with it alone.
  struct Work {
    ScreeningTotals& tally;
    Family family = {}, filled = {};
    std::deque<ShapeCosts> mixed = {};  // of points with some layers redone
  };
  void screen_family(const Point& start, std::size_t grid, std::int64_t& order, ScreeningTotals& tally) const;
  void screen_rest(Point point, const Costs& costs, std::size_t grid, std::int64_t& order, Work& work) const;
  std::optional<Costs> costs_of(const Point& point,
                                std::deque<ShapeCosts>& mixed) const;  // measured; empty: not before an interrupt
  Screened screened(const Item& item) const;
  void look_at(const Item& item, Work& work) const;
  bool screen_best(Kept& kept, const GridCosts& grid, ScreeningTotals& tally) const;
  Family& family_of(Work& work, const Item& item) const { return item.costs.best && apart_ ? work.filled : work.family; }
  const BestFamilies& best_of(const ScreeningTotals& tally, bool filled) const {
    return filled && apart_ ? tally.filled : tally.best;
  }

  const Cluster& cluster_;
  const SearchOptions& options_;
  const SearchSpace& space_;
  const Screen* screen_;
  const SearchCosts* costs_;
  std::optional<Runner> runner_;
  bool apart_;  // --recompute best is one of several, and has families of its own
  bool keeps_;  // so is no recomputation
  mutable std::atomic<bool> found_ = false;
};

}  // namespace foreshard
