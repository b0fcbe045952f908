// Screening: estimates the points of a space in closed form, grid by grid, and keeps the best families (search_kept.h). Internal to
// strategy/.
#pragma once

#include <atomic>

#include "strategy/search/search_costs.h"
#include "strategy/search/search_framework.h"
#include "strategy/search/search_kept.h"

namespace foreshard {

// Whether a search may split the layers of a pipeline otherwise than evenly. DeepSpeed splits them evenly or by parameters only.
bool splits_layers(const SearchOptions& options);

class Screening {
 public:
  // All arguments must outlive it. `screen` and `costs` are null for models that are no transformers; then every point counts as
  // fitting, with score 0.
  Screening(const Cluster& cluster, const SearchOptions& options, const SearchSpace& space, const Screen* screen,
            const SearchCosts* costs);

  // Screens the points of a grid. Any thread may call it, each with its own tally. Once any thread has found a point that fits, it ends
  // early when the tally has counted `most` points.
  void screen(std::size_t grid, ScreeningTotals& tally, std::int64_t most) const;
  bool found() const { return found_; }  // some point fits by the screen
  // Whether the schedule uses cells that nobody asked for. Refining these takes several times as long, so their families are kept apart.
  bool offers_cells(Schedule schedule) const {
    return screen_ && space_.schedules.empty() && !space_.only_cells && schedule_entry(schedule).cells;
  }
  // With a framework: from now on a point is expected to take `excess` times the memory that the screen says. False: nothing changes, since
  // that is no more than before.
  bool expect_memory(double excess);

 private:
  struct Costs {  // of a point
    // Its own costs. With --recompute best, and with full recomputation of the fewest layers that make room: those without recomputation.
    const ShapeCosts* shape = nullptr;
    // Full recomputation of the fewest layers that make room: those with full recomputation.
    const ShapeCosts* redone = nullptr;
    bool best = false;                 // --recompute best
    const ShapeCosts* kept = nullptr;  // without recomputation, where the point recomputes and the space has it without, too
  };
  struct Item {
    Point point = {};
    Costs costs = {};
    const GridCosts* grid = nullptr;
    std::int64_t order = 0;
  };
  struct Work {
    ScreeningTotals& tally;
    Family family = {}, filled = {};    // `filled`: its points with --recompute best, `family`: all others
    std::deque<ShapeCosts> mixed = {};  // costs of points that recompute some layers
  };
  void screen_family(const Point& start, std::size_t grid, std::int64_t& order, ScreeningTotals& tally) const;
  void screen_rest(Point point, const Costs& costs, std::size_t grid, std::int64_t& order, Work& work) const;
  std::optional<Costs> costs_of(const Point& point,
                                std::deque<ShapeCosts>& mixed) const;  // empty: not measured before an interrupt
  bool asks_framework() const { return options_.base.framework != Strategy{}.framework; }  // about memory (search_refine.h)
  Screened screened(const Item& item) const;
  void look_at(const Item& item, Work& work) const;  // estimates a point, counts it, and offers it to its family
  bool screen_best(Kept& kept, const GridCosts& grid, ScreeningTotals& tally) const;
  Family& family_of(Work& work, const Item& item) const { return item.costs.best && apart_ ? work.filled : work.family; }
  const BestFamilies& best_of(const ScreeningTotals& tally, Schedule schedule, bool filled) const {
    return offers_cells(schedule) ? tally.cells : filled && apart_ ? tally.filled : tally.best;
  }

  const Cluster& cluster_;
  const SearchOptions& options_;
  const SearchSpace& space_;
  const Screen* screen_;
  const SearchCosts* costs_;
  std::optional<Runner> runner_;
  // Of a framework: its memory per byte of the screen's. At first less than most need, so that all points that could fit are looked at.
  double excess_ = 1;
  bool apart_;   // --recompute best is one of several kinds of recomputation in the space; its points make separate families
  bool keeps_;   // no recomputation is one of the kinds in the space
  bool splits_;  // splits_layers
  mutable std::atomic<bool> found_ = false;
};

}  // namespace foreshard
