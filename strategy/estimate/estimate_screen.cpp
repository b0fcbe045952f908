#include "strategy/estimate/estimate_screen.h"

#include <algorithm>
#include <cmath>

#include "strategy/estimate/estimate_memory.h"

namespace foreshard {

using enum stage_kind::Kind;

Screen::Screen(const Model& model, const Cluster& cluster, const Strategy& base, const MachineProfile* profile)
    : model_(model, cluster, base, profile) {
  capacity_ =
      static_cast<double>(gpu_of(cluster, cluster.nodes.front().shape.gpu).memory.value) * (1 - base.device_memory.reserve);
  find_gpus();
}

// The bound is that of a pipeline whose groups all cross as few nodes as the first.
TimedPoint Screen::timed(const Point& point, const ShapeCosts& shape, const GridCosts& grid) const {
  TimedPoint found = PointTimes(model_, point, shape, grid).timed();
  if (grid.tensor_across <= 1 && grid.rows_across <= 1) return found;
  const ShapeCosts slow = across_nodes(shape, grid);
  const TimedPoint slower = PointTimes(model_, point, slow, grid).timed();
  if (slower.time > found.time) found.time = slower.time, found.balanced = slower.balanced;
  return found;
}

Screened Screen::at(const Point& point, const ShapeCosts& shape, const GridCosts& grid) const {
  if (!grid.by_gpu.empty()) return mixed(point, shape, shape, grid);
  const double peak = memory_of(model_, point, shape, grid);
  const TimedPoint found = timed(point, shape, grid);
  return {.time = found.time, .bound = found.bound, .balanced = found.balanced, .peak = peak, .needs = peak};
}

bool Screen::fits_for_sure(const Point& point, const ShapeCosts& shape, const GridCosts& grid) const {
  const double needs = grid.by_gpu.empty() ? memory_of(model_, point, shape, grid) : mixed(point, shape, shape, grid).needs;
  return !grid.mixes_gpus && needs * kMemorySlack <= capacity_;
}

// Each recomputed layer frees the same bytes of every chunk in flight, so the number of layers that makes room is a quotient. The time
// uses the mean of these numbers over the ranks between the ends, separately for those with a layer less. With several chunks per rank
// the busiest rank sets the pace, so the time uses the number of the first rank.
Screened Screen::filled(const Point& point, const ShapeCosts& none, const ShapeCosts& full, const GridCosts& grid) const {
  if (!grid.by_gpu.empty()) return mixed(point, none, full, grid);
  const double m = model_.microbatches(point);
  const ScreenedModel::Layers all = model_.layers_of(point);
  const bool chunks = point.virtual_stages > 1;
  const double outside = grid.framework + none.workspace, freed = none.activations.layer - full.activations.layer;
  std::array<double, 4> redone = {};
  const int thin = chunks || all[Middle] <= 1 ? 0 : model_.thinner(point);
  double most = 0, middles = 0, thin_middles = 0, all_fewer = 0, fewest = all[Middle], thin_fewest = fewest;
  for (int rank = 0; rank < point.pp; ++rank) {
    const int kind = point.pp == 1 ? Only : rank == 0 ? First : rank + 1 == point.pp ? Last : Middle;
    const auto at = static_cast<std::size_t>(kind);
    const bool is_thin = kind == Middle && rank <= thin;
    const double layers = all[at] - (is_thin ? 1 : 0), scratch = none.scratch.of(kind, layers);
    const RankBytes memory = rank_memory(model_, point, none, m, kind, rank, layers);
    const double kept = memory.fixed + outside + activations_of(none, kind, layers, memory.flight, chunks);
    double count = 0, bytes = kept + scratch;
    if (bytes > capacity_) {
      const double more = std::max(scratch, full.scratch.of(kind, layers));
      count = freed > 0 ? std::clamp(std::ceil((kept + more - capacity_) / (freed * memory.flight)), 1.0, layers) : layers;
      bytes = kept + more - count * freed * memory.flight;
    }
    most = std::max(most, bytes);
    if (rank > 0) all_fewer += redone[First] - count;
    if (kind == Middle || chunks) (is_thin ? thin_fewest : fewest) = std::min(is_thin ? thin_fewest : fewest, count);
    if (kind == Middle)
      (is_thin ? thin_middles : middles) += count;
    else
      redone[at] = count;
  }
  if (chunks) redone[Last] = redone[First];
  redone[Middle] = chunks ? redone[First] : point.pp > 2 ? middles / (point.pp - 2 - thin) : 0;
  const double thin_redone = thin > 0 ? thin_middles / thin : 0, each = full.backward.layer - none.backward.layer;
  ShapeCosts mixed = partly_redone(none, full, all[point.pp == 1 ? Only : Middle], redone);
  mixed.thinner_redo_less = thin > 0 ? (redone[Middle] - thin_redone) * each : 0;
  const TimedPoint found = timed(point, mixed, grid);
  Screened screened{.time = found.time, .bound = found.bound, .balanced = found.balanced, .peak = most, .needs = most};
  // The bound must hold for the rank that recomputes the fewest layers. With chunks, the fill of the pipeline passes each rank with that
  // rank's own number.
  const double fewer = std::max({0.0, redone[Middle] - fewest, thin > 0 ? thin_redone - thin_fewest : 0.0});
  screened.bound -= (m * point.virtual_stages + point.pp) * fewer * each;
  if (chunks) screened.time -= all_fewer * each;
  return screened;
}

}  // namespace foreshard
