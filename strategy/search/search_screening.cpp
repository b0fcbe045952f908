#include "strategy/search/search_screening.h"

#include <algorithm>

namespace foreshard {

static constexpr double kLeastOfFramework = 0.8, kNoticed = 1.02;

Screening::Screening(const Cluster& cluster, const SearchOptions& options, const SearchSpace& space, const Screen* screen,
                     const SearchCosts* costs)
    : cluster_(cluster),
      options_(options),
      space_(space),
      screen_(screen),
      costs_(costs),
      runner_(find_runner(options.base.framework)),
      apart_(space.best && space.recomputes.size() > 1),
      keeps_(std::ranges::find(space.recomputes, RecomputeKind::None) != space.recomputes.end()),
      splits_(splits_layers(options)) {
  if (asks_framework()) excess_ = kLeastOfFramework;
}

bool Screening::expect_memory(double excess) {
  if (excess <= excess_ * kNoticed) return false;
  excess_ = excess, found_ = false;
  return true;
}

bool splits_layers(const SearchOptions& options) {
  return options.balance && options.base.pipeline.layer_split.empty() &&
         find_runner(options.base.framework) != Runner::DeepSpeed;
}

void Screening::screen(std::size_t grid, ScreeningTotals& tally, std::int64_t most) const {
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

void Screening::screen_family(const Point& start, std::size_t grid, std::int64_t& order, ScreeningTotals& tally) const {
  Work work{tally};
  for_each_shape(space_, cluster_, start, [&](Point point) {
    const bool best = space_.best && point.recompute == RecomputeKind::Each;
    if (best && apart_ && offers_cells(point.schedule)) return;
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
      if (!costs)
        screen_rest(point, {.best = best}, grid, order, work);
      else if (const auto all = costs_of(point, work.mixed))
        screen_rest(point, *all, grid, order, work);
    }
  });
  if (!(work.family.variants.empty() && work.filled.variants.empty())) found_ = true;
  (offers_cells(start.schedule) ? tally.cells : tally.best).offer(std::move(work.family));
  tally.filled.offer(std::move(work.filled));
}

std::optional<Screening::Costs> Screening::costs_of(const Point& point, std::deque<ShapeCosts>& mixed) const {
  Point none = point;
  none.recompute = RecomputeKind::None;
  const ShapeCosts* other = keeps_ && point.recompute != RecomputeKind::None ? costs_->shape(none) : nullptr;
  if (space_.best && point.recompute == RecomputeKind::Each)
    return Costs{.shape = costs_->shape(none), .best = true, .kept = other};
  const ShapeCosts* costs = costs_->shape(point);
  if (point.recompute_layers == 0) return Costs{.shape = costs, .kept = other};
  const ShapeCosts* kept = costs_->shape(none);
  if (!kept) return {};
  if (point.recompute_layers < 0) return Costs{.shape = kept, .redone = costs, .kept = other};
  const double all = static_cast<double>(space_.layers) / (point.pp * point.virtual_stages), n = point.recompute_layers;
  mixed.push_back(partly_redone(*kept, *costs, all, {n, n, n, n}));
  return Costs{.shape = &mixed.back(), .kept = other};
}

// The loops that need nothing but arithmetic.
void Screening::screen_rest(Point point, const Costs& costs, std::size_t grid, std::int64_t& order, Work& work) const {
  ScreeningTotals& tally = work.tally;
  bool hopeless = false;
  if (bounded(options_) && costs.shape) {
    point.zero_group = space_.zero_groups.empty() ? 0 : space_.zero_groups.front();
    point.overlap_tensor = overlaps_for(space_, point).front().tp;
    const Screened least = screen_->at(point, *costs.shape, costs_->grid(grid, point));
    const double bound = least.bound - (splits_ ? least.balanced : 0);
    hopeless = score(options_.objective, point, bound, 0) > best_of(tally, point.schedule, costs.best).worst();
  }
  for (const std::int8_t zero : zeros_for(space_, point)) {
    point.zero = zero;
    const std::vector<Overlap> overlaps = overlaps_for(space_, point);
    for (const int group : zero_groups_for(space_, point)) {
      if (zero == 0 && group != 0 && space_.zero_groups.empty()) break;
      point.zero_group = group;
      const GridCosts* costs_of_grid = costs.shape ? &costs_->grid(grid, point) : nullptr;
      // Where everything fits for sure, recomputing nothing is fastest, and points that recompute only what they must are the same as that.
      // A sample takes its points from the whole space, so then all are screened.
      const bool least_redone = costs.best || costs.redone;
      const bool keeps = !asks_framework() && costs.kept && (least_redone || (bounded(options_) && options_.sample == 0)) &&
                         screen_->fits_for_sure(point, *costs.kept, *costs_of_grid);
      for (const Overlap& overlap : overlaps) {
        ++tally.enumerated, ++order;
        point.overlap_gradients = overlap.gradients, point.overlap_parameters = overlap.parameters;
        point.overlap_p2p = overlap.p2p, point.overlap_tensor = overlap.tp;
        if (costs_of_grid && costs_of_grid->mixes_gpus)
          ++tally.pruned.shape;
        else if (hopeless)
          ++tally.pruned.bound;
        else if (keeps)
          ++(least_redone ? tally.evaluated : tally.pruned.redone);
        else
          look_at({point, costs, costs_of_grid, order}, work);
      }
    }
  }
}

void Screening::look_at(const Item& item, Work& work) const {
  const auto& [point, costs, grid, order] = item;
  ScreeningTotals& tally = work.tally;
  Family& family = family_of(work, item);
  Kept kept{.order = order, .point = point};
  const bool named = !options_.base.recompute.per_stage.empty() || !options_.base.recompute.only.empty();
  const char* refused = !runner_ ? nullptr : named ? "its stages recompute alike" : refused_by(*runner_, point, options_.base);
  if (costs.shape) {
    kept.screened = screened(item);
    if (costs.best && !screen_best(kept, *grid, tally)) return;
    ++tally.evaluated;
  }
  if (refused) ++tally.pruned.framework, ++tally.refusals[refused];
  kept.time = kept.screened.time - (splits_ ? kept.screened.balanced : 0);
  kept.score = score(options_.objective, point, kept.time, kept.screened.peak);
  const bool fits = !costs.shape || kept.screened.needs * excess_ <= screen_->capacity() * Screen::kMemorySlack;
  if (refused && fits) tally.without_framework = std::min(tally.without_framework, kept);
  if (refused) return;
  if (!fits) {
    ++tally.pruned.memory;
    tally.without_memory_limit = std::min(tally.without_memory_limit, kept);
    return;
  }
  tally.bound = std::min(tally.bound, score(options_.objective, point, kept.screened.bound, kept.screened.peak));
  tally.sample.offer(kept);
  if (!costs.shape) return found_ = true, tally.best.offer({{kept}});  // nothing is known yet: every point is refined
  family.offer(kept);
  if (options_.objective != Objective::Pareto) return;
  const auto bin = static_cast<std::size_t>(
      std::clamp(kept.screened.peak / screen_->capacity() * (kMemoryBins - 1), 0.0, static_cast<double>(kMemoryBins - 1)));
  if (!tally.bins[bin] || kept < *tally.bins[bin]) tally.bins[bin] = kept;
}

Screened Screening::screened(const Item& item) const {
  const auto& [point, costs, grid, order] = item;
  return costs.redone ? screen_->filled(point, *costs.shape, *costs.redone, *grid) : screen_->at(point, *costs.shape, *grid);
}

// Estimates a point with --recompute best. False: it is skipped by its bound.
bool Screening::screen_best(Kept& kept, const GridCosts& grid, ScreeningTotals& tally) const {
  const Screened all = kept.screened;
  if (all.needs * Screen::kMemorySlack <= screen_->capacity()) return true;
  if (bounded(options_) &&
      score(options_.objective, kept.point, all.time, all.peak) > best_of(tally, kept.point.schedule, true).worst())
    return ++tally.pruned.bound, false;
  kept.screened = costs_->best(kept.point, all, grid);
  kept.screened.bound = all.bound;  // holds for every choice of what to recompute
  return true;
}

}  // namespace foreshard
