#include "strategy/search/search_costs.h"

#include <algorithm>
#include <numeric>

#include "core/base/error.h"

namespace foreshard {

// Steps of about the golden section of the whole.
std::vector<std::size_t> scattered(std::size_t count) {
  std::vector<std::size_t> all;
  if (count == 0) return all;
  auto step = static_cast<std::size_t>(0.618 * static_cast<double>(count)) + 1;
  while (std::gcd(step, count) != 1) ++step;
  for (std::size_t i = 0, next = 0; i < count; ++i, next = (next + step) % count) all.push_back(next);
  return all;
}

// The modules that `--recompute best` recomputes in a transformer's layer most often, beside `selective`: those that cost next to nothing,
// and everything but attention and collectives.
static const std::vector<std::vector<std::string>>& layer_ways() {
  static const std::vector<std::vector<std::string>> ways = {{"norm", "activation"}, {"norm", "mlp", "dropout"}};
  return ways;
}

SearchCosts::SearchCosts(const Screen& screen, const SearchSpace& space, const Model& model, const Cluster& cluster,
                         const SearchOptions& options)
    : screen_(screen), space_(space), cluster_(cluster), grids_(space.grids.size()) {
  for (const std::size_t grid : scattered(space.grids.size())) {
    jobs_.push_back({grid});
    Point point = space.grids[grid];
    for (const std::int64_t micro_batch : micro_batches(space, point)) {
      point.micro_batch = micro_batch;
      for_each_shape(space, cluster, point, [&](Point shape) {
        const bool best = space.best && shape.recompute == RecomputeKind::Each;
        if (best) shape.recompute = RecomputeKind::Full;
        add(shape, grid);
        shape.recompute = RecomputeKind::None;  // of the layers that are not redone
        if (space.recompute_layers > 0 || best) add(shape, grid);
      });
    }
  }
  shapes_.resize(points_.size());
  if (!space.best) return;
  ways_.resize(points_.size());
  FS_ASSERT(layer_ways().size() == kWays);
  for (const auto& modules : layer_ways()) {
    Strategy base = options.base;
    base.recompute = {.kind = RecomputeKind::Modules, .modules = modules};
    screens_.emplace_back(model, cluster, base, options.profile);
  }
}

void SearchCosts::add(const Point& shape, std::size_t grid) {
  if (!shape_of_.try_emplace(key(shape), points_.size()).second) return;
  jobs_.push_back({grid, points_.size()});
  points_.push_back(shape);
}

Point SearchCosts::point_of(std::size_t job) const {
  const Job& what = jobs_[job];
  return what.shape ? points_[*what.shape] : space_.grids[what.grid];
}

void SearchCosts::measure(std::size_t job, const std::function<bool()>& stop) {
  const Job& what = jobs_[job];
  if (what.shape) {
    shapes_[*what.shape] = screen_.shape(points_[*what.shape]);
    return;
  }
  Point grid = space_.grids[what.grid];
  std::map<std::pair<std::int8_t, int>, GridCosts> measured;
  for (const std::int8_t order : rank_orders_for(space_, grid, cluster_))
    for (const int group : zero_groups_for(space_, grid)) {
      if (stop && stop()) return;
      grid.order = order, grid.zero_group = group;
      measured[{order, group}] = screen_.grid(grid);
    }
  grids_[what.grid] = std::move(measured);
}

void SearchCosts::measure_some(const std::function<bool(std::size_t grid)>& enough, const std::function<bool()>& stop) {
  constexpr std::size_t kMost = 300;
  for (std::size_t job = 0; job < std::min(jobs_.size(), kMost); ++job) {
    const std::size_t grid = jobs_[job].grid;
    measure(job, stop);
    if (stop()) return;
    const bool last = job + 1 == jobs_.size() || jobs_[job + 1].grid != grid;
    if (last && enough(grid)) return;
  }
}

// Rank order 3 has other stages between the ranks of a tensor group and is measured on another probe; the negative stride tells it apart.
SearchCosts::ShapeKey SearchCosts::key(const Point& p) {
  const int stride = p.order == 3 ? -stride_of(p) : stride_of(p);
  return {p.tp, p.cp, p.ep, p.etp, stride, p.micro_batch, p.sequence_parallel, p.recompute};
}

const ShapeCosts* SearchCosts::shape(const Point& point) const {
  const auto& found = shapes_[shape_of_.at(key(point))];
  return found ? &*found : nullptr;
}

const ShapeCosts* SearchCosts::find(const Point& point) const {
  return shape_of_.contains(key(point)) ? shape(point) : nullptr;
}

std::vector<const ShapeCosts*> SearchCosts::ways(const Point& point) const {
  const auto shape_as = [&](RecomputeKind kind) {
    Point shape = point;
    shape.recompute = kind;
    return shape;
  };
  std::vector<const ShapeCosts*> all = {shape(shape_as(RecomputeKind::None))};
  const Point selective = shape_as(RecomputeKind::Selective);
  if (shape_of_.contains(key(selective))) all.push_back(shape(selective));
  const std::size_t index = shape_of_.at(key(shape_as(RecomputeKind::None)));
  Ways& between = ways_[index];
  between.once.call([&] {
    Point one = points_[index];
    one.recompute = RecomputeKind::Modules;
    for (std::size_t way = 0; way < kWays; ++way) between.costs[way] = screens_[way].shape(one);
  });
  for (const auto& costs : between.costs)
    if (costs) all.push_back(&*costs);
  all.push_back(shape(shape_as(RecomputeKind::Full)));
  std::erase(all, nullptr);  // interrupted before
  return all;
}

Screened SearchCosts::best(const Point& point, const Screened& all, const GridCosts& grid) const {
  Point full = point;
  full.recompute = RecomputeKind::Full;
  const ShapeCosts* least = shape(full);
  Screened best = least ? screen_.at(point, *least, grid) : all;
  if (best.needs > screen_.capacity()) return best;  // there is no need to measure what keeps more
  const std::vector<const ShapeCosts*> each = ways(point);
  for (std::size_t more = 0; more < each.size(); ++more)
    for (std::size_t less = more + 1; less < each.size(); ++less) {
      const Screened pair = screen_.filled(point, *each[more], *each[less], grid);
      if (pair.needs <= screen_.capacity() && pair.time < best.time) best = pair;
    }
  best.time = std::max(best.time, all.time);
  return best;
}

const GridCosts& SearchCosts::grid(std::size_t grid, const Point& point) const {
  return grids_[grid].at({point.order, point.zero_group});
}

}  // namespace foreshard
