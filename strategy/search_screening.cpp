#include "strategy/search_screening.h"

#include <algorithm>

namespace foreshard {

Screening::Screening(const Cluster& cluster, const SearchOptions& options, const SearchSpace& space, const Screen* screen,
                     const SearchCosts* costs)
    : cluster_(cluster),
      options_(options),
      space_(space),
      screen_(screen),
      costs_(costs),
      runner_(find_runner(options.base.framework)),
      apart_(space.best && space.recomputes.size() > 1) {}

void Screening::screen(std::size_t grid, Tally& tally, std::int64_t most) const {
  std::int64_t order = static_cast<std::int64_t>(grid) << 32;
  Point point = space_.grids[grid];
  if (zero_groups_for(space_, point).empty()) ++tally.enumerated, ++tally.pruned.shape;
  for (const std::int64_t micro_batch : micro_batches(space_, point)) {
    point.micro_batch = micro_batch;
    for (const int v : virtual_stages(space_, point)) {
      if (found_ && tally.enumerated > most) return;
      point.virtual_stages = v;
      const std::vector<Schedule> schedules = schedules_for(space_, point);
      if (schedules.empty()) ++tally.enumerated, ++tally.pruned.shape;
      for (const Schedule schedule : schedules) {
        point.schedule = schedule;
        screen_family(point, grid, order, tally);
      }
    }
  }
}

void Screening::screen_family(const Point& start, std::size_t grid, std::int64_t& order, Tally& tally) const {
  Family family, filled;
  for_each_shape(space_, cluster_, start, [&](Point point) {
    const bool best = space_.best && point.recompute == RecomputeKind::Each;
    if (best && apart_ && tally.scouts()) return;
    Point none = point;
    none.recompute = RecomputeKind::None;
    const ShapeCosts* costs = costs_ ? costs_->shape(best ? none : point) : nullptr;
    if (costs && !costs_->measured(grid)) return;  // interrupted before
    if (costs_ && !costs) {
      ++tally.enumerated, ++tally.pruned.shape;
      return;
    }
    for (const int layers : recompute_layers(space_, point)) {
      point.recompute_layers = layers;
      if (layers == 0 || !costs) {
        screen_rest(point, {.shape = costs, .best = best}, grid, order, best && apart_ ? filled : family, tally);
        continue;
      }
      const ShapeCosts* kept = costs_->shape(none);
      if (!kept) return;  // interrupted before
      if (layers < 0) screen_rest(point, {kept, costs}, grid, order, family, tally);
      if (layers < 0) continue;
      const double all = static_cast<double>(space_.layers) / (point.pp * point.virtual_stages), n = layers;
      const ShapeCosts mixed = partly_redone(*kept, *costs, all, {n, n, n, n});
      screen_rest(point, {&mixed}, grid, order, family, tally);
    }
  });
  if (!tally.scouts() && !(family.variants.empty() && filled.variants.empty())) found_ = true;
  tally.best.offer(std::move(family));
  tally.filled.offer(std::move(filled));
}

// The loops that need nothing but arithmetic.
void Screening::screen_rest(Point point, const Costs& costs, std::size_t grid, std::int64_t& order, Family& family,
                            Tally& tally) const {
  bool hopeless = false;
  if (bounded(options_) && costs.shape) {
    point.zero_group = space_.zero_groups.empty() ? 0 : space_.zero_groups.front();
    const double bound = screen_->at(point, *costs.shape, costs_->grid(grid, point), kNothing).bound;
    hopeless = score(options_.objective, point, bound, 0) > best_of(tally, costs.best).worst();
  }
  for (const std::int8_t zero : zeros_for(space_, point)) {
    point.zero = zero;
    std::vector<Overlap> overlaps = overlaps_for(space_, point);
    if (tally.scouts()) overlaps = {overlaps.front()};
    for (const int group : zero_groups_for(space_, point)) {
      if (zero == 0 && group != 0 && space_.zero_groups.empty()) break;
      point.zero_group = group;
      const GridCosts* costs_of_grid = costs.shape ? &costs_->grid(grid, point) : nullptr;
      // Where everything fits for sure the best is to keep it, which is a point of its own.
      const bool kept = !runner_ && costs_of_grid && (costs.best ? apart_ : costs.redone != nullptr) &&
                        screen_->fits_for_sure(point, *costs.shape, *costs_of_grid);
      for (const Overlap& overlap : overlaps) {
        ++tally.enumerated, ++order;
        point.overlap_gradients = overlap.gradients, point.overlap_parameters = overlap.parameters;
        point.overlap_p2p = overlap.p2p;
        if (costs_of_grid && costs_of_grid->torn)
          ++tally.pruned.shape;
        else if (hopeless)
          ++tally.pruned.bound;
        else if (kept)
          ++tally.evaluated;
        else
          look_at(point, costs, costs_of_grid, order, family, tally);
      }
    }
  }
}

void Screening::look_at(const Point& point, const Costs& costs, const GridCosts* grid, std::int64_t order, Family& family,
                        Tally& tally) const {
  Kept kept{.order = order, .point = point};
  const bool named = !options_.base.recompute.per_stage.empty() || !options_.base.recompute.only.empty();
  const char* refused = !runner_ ? nullptr : named ? "its stages recompute alike" : refused_by(*runner_, point);
  if (refused) ++tally.pruned.framework, ++tally.refusals[refused];
  if (costs.shape) {
    const double bytes = screen_->capacity() * Screen::kMemorySlack;
    Enough enough = enough_for(options_, point, refused, bytes, family, tally);
    if (costs.best) enough.fits = enough.over = kNever;
    kept.screened = costs.redone ? screen_->filled(point, *costs.shape, *costs.redone, *grid, enough)
                                 : screen_->at(point, *costs.shape, *grid, enough);
    if (costs.best && !screen_best(kept, *grid, tally, enough)) return;
    ++tally.evaluated;
  }
  kept.time = kept.screened.time;
  kept.score = score(options_.objective, point, kept.time, kept.screened.peak);
  const bool fits = !costs.shape || kept.screened.needs <= screen_->capacity() * Screen::kMemorySlack;
  if (refused && fits) tally.without_framework = std::min(tally.without_framework, kept.score);
  if (refused) return;
  if (!fits) {
    ++tally.pruned.memory;
    tally.without_memory_limit = std::min(tally.without_memory_limit, kept.score);
    return;
  }
  tally.sample.offer(kept);
  if (!costs.shape) return found_ = true, tally.best.offer({{kept}});  // nothing is known yet: every point is refined
  family.offer(kept);
  if (options_.objective != Objective::Pareto) return;
  const auto bin = static_cast<std::size_t>(
      std::clamp(kept.screened.peak / screen_->capacity() * (kMemoryBins - 1), 0.0, static_cast<double>(kMemoryBins - 1)));
  if (!tally.bins[bin] || kept < *tally.bins[bin]) tally.bins[bin] = kept;
}

// False: passed over.
bool Screening::screen_best(Kept& kept, const GridCosts& grid, Tally& tally, const Enough& enough) const {
  const Screened all = kept.screened;
  if (all.needs * Screen::kMemorySlack <= screen_->capacity()) return true;
  if (bounded(options_) && score(options_.objective, kept.point, all.time, all.peak) > best_of(tally, true).worst())
    return ++tally.pruned.bound, false;
  kept.screened = costs_->best(kept.point, all, grid, enough);
  return true;
}

}  // namespace foreshard
