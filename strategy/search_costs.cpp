#include "strategy/search_costs.h"

#include <numeric>

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

SearchCosts::SearchCosts(const Screen& screen, const SearchSpace& space, const Cluster& cluster)
    : screen_(screen), space_(space), cluster_(cluster), grids_(space.grids.size()) {
  for (const std::size_t grid : scattered(space.grids.size())) {
    jobs_.push_back({grid});
    Point point = space.grids[grid];
    for (const std::int64_t micro_batch : micro_batches(space, point)) {
      point.micro_batch = micro_batch;
      for_each_shape(space, cluster, point, [&](Point shape) {
        add(shape, grid);
        shape.recompute = RecomputeKind::None;  // of the layers that are not redone
        if (space.recompute_layers > 0) add(shape, grid);
      });
    }
  }
  shapes_.resize(points_.size());
}

void SearchCosts::add(const Point& shape, std::size_t grid) {
  if (!shape_of_.try_emplace(key(shape), points_.size()).second) return;
  jobs_.push_back({grid, points_.size()});
  points_.push_back(shape);
}

void SearchCosts::measure(std::size_t job) {
  const Job& what = jobs_[job];
  if (what.shape) {
    shapes_[*what.shape] = screen_.shape_costs(points_[*what.shape]);
    return;
  }
  Point grid = space_.grids[what.grid];
  std::map<std::pair<std::int8_t, int>, GridCosts> measured;
  for (const std::int8_t order : rank_orders_for(space_, grid, cluster_))
    for (const int group : zero_groups_for(space_, grid)) {
      grid.order = order, grid.zero_group = group;
      measured[{order, group}] = screen_.grid_costs(grid);
    }
  grids_[what.grid] = std::move(measured);
}

// Where roles stand between the ranks of a group, the probe is another one.
SearchCosts::ShapeKey SearchCosts::key(const Point& p) {
  const int stride = p.order == 3 ? -stride_of(p) : stride_of(p);
  return {p.tp, p.cp, stride, p.micro_batch, p.sequence_parallel, p.recompute};
}

const ShapeCosts* SearchCosts::shape(const Point& point) const {
  const auto& found = shapes_[shape_of_.at(key(point))];
  return found ? &*found : nullptr;
}

const GridCosts& SearchCosts::grid(std::size_t grid, const Point& point) const {
  return grids_[grid].at({point.order, point.zero_group});
}

}  // namespace foreshard
