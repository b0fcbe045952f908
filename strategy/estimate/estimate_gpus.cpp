// The screen where GPUs differ (estimate_screen.h). Each kind of GPU has its own costs, measured as if the cluster had only that kind.
// `lower` requires equal GPUs in a stage, so each pipeline rank is on one kind. This file combines the times and bytes of the ranks.
#include <algorithm>
#include <cmath>

#include "core/network/network.h"
#include "core/plan/ranks.h"
#include "strategy/estimate/estimate_memory.h"
#include "strategy/estimate/estimate_mixed.h"
#include "strategy/estimate/estimate_screen.h"
#include "strategy/schedule/schedule.h"

namespace foreshard {

using enum stage_kind::Kind;

namespace {
std::size_t index(int i) { return static_cast<std::size_t>(i); }
int kind_of(const Point& point, int rank) {
  return point.pp == 1 ? Only : rank == 0 ? First : rank + 1 == point.pp ? Last : Middle;
}
}  // namespace

struct Screen::Part {
  const Screen* screen = nullptr;  // of its GPU
  const ShapeCosts* shape = nullptr;
  const GridCosts* grid = nullptr;
  int gpu = 0;
  double redone = 0;          // further layers of each chunk that are recomputed, beyond those of the point
  PipelineTimes moving = {};  // without the communication of ZeRO 2 and 3
  // With transfers that do not overlap; `times` also with the communication of ZeRO 2 and 3.
  PipelineTimes plain = {}, times = {};
  PointTimes of(const Point& point) const { return {screen->model_, point, *shape, *grid}; }
};

struct Screen::Parts {
  std::vector<Part> all = {};
  std::vector<int> of = {};  // [rank]
  const Part& at(int rank) const { return all[static_cast<std::size_t>(of[static_cast<std::size_t>(rank)])]; }

  UnequalRankTimes mixed(PipelineTimes Part::*which) const {
    const int p = static_cast<int>(of.size());
    const PipelineTimes& first = at(0).*which;
    UnequalRankTimes result{.chunks = first.chunks, .microbatches = first.microbatches};
    result.hop = first.hop;
    for (int rank = 0; rank < p; ++rank) {
      const PipelineTimes& t = at(rank).*which;
      const std::size_t kind = p == 1 ? Only : rank == 0 ? First : rank + 1 == p ? Last : Middle;
      const bool fewer = rank > 0 && rank <= t.fewer;
      const double more = t.chunks - 1;
      result.ranks.push_back({.forward = t.forward[kind] - (fewer ? t.forward_less : 0),
                              .backward = t.backward[kind] - (fewer ? t.backward_less : 0),
                              .more_forward = more * t.forward[Middle],
                              .more_backward = more * t.backward[Middle],
                              .weights = t.weights[Middle] * t.chunks,
                              .chunk = t.forward[Middle] + t.backward[Middle]});
    }
    return result;
  }
};

bool gpus_differ(const Cluster& cluster) {
  return std::any_of(cluster.nodes.begin(), cluster.nodes.end(),
                     [&](const NodeGroup& group) { return group.shape.gpu != cluster.nodes.front().shape.gpu; });
}

// For each kind of GPU, a cluster with as many GPUs of that kind as the whole cluster has GPUs.
void Screen::find_gpus() {
  if (!gpus_differ(model_.cluster)) return;
  for (const Gpu& gpu : model_.cluster.gpus) {
    Cluster alike = model_.cluster;
    std::erase_if(alike.nodes, [&](const NodeGroup& group) { return group.shape.gpu != gpu.name; });
    std::erase_if(alike.gpus, [&](const Gpu& other) { return other.name != gpu.name; });
    if (alike.nodes.empty()) continue;
    while (gpu_count(alike) < gpu_count(model_.cluster)) ++alike.nodes.back().count;
    alike_.push_back(std::move(alike));
  }
  const double reserve = model_.base.device_memory.reserve *
                         static_cast<double>(gpu_of(model_.cluster, model_.cluster.nodes.front().shape.gpu).memory.value);
  capacity_ = 0;
  for (const Cluster& alike : alike_) {
    gpus_.emplace_back(model_.model, alike, model_.base, model_.profile);
    Screen& screen = gpus_.back();
    screen.capacity_ = static_cast<double>(alike.gpus.front().memory.value) - reserve;
    capacity_ = std::max(capacity_, screen.capacity_);
  }
}

// Finds the kind of GPU of each pipeline rank.
void Screen::find_gpus(const Point& point, GridCosts& grid) const {
  Plan plan;
  plan.axes = axes_of(point);
  plan.placement.order = in_order(plan.axes, order_of(model_.base, point));
  for (int role = 0; role < point.pp; ++role)
    plan.roles.push_back({.name = std::to_string(role), .axes = {AxisId{0}, AxisId{1}, AxisId{2}, AxisId{3}}});
  const Network network(model_.cluster);
  const Ranks ranks(plan);
  const auto gpu_at = [&](RankId rank) {
    const std::string& name = network.gpu(ranks.device(rank)).name;
    const auto found =
        std::find_if(alike_.begin(), alike_.end(), [&](const Cluster& alike) { return alike.gpus.front().name == name; });
    return static_cast<int>(found - alike_.begin());
  };
  for (std::int32_t role = 0; role < point.pp; ++role) {
    const int first = ranks.first({role}).value;
    grid.gpu.push_back(gpu_at({first}));
    for (int i = 1; i < ranks.count({role}); ++i) grid.mixes_gpus |= gpu_at({first + i}) != grid.gpu.back();
  }
  if (grid.mixes_gpus) return;
  for (const Screen& screen : gpus_) grid.by_gpu.push_back(probed_grid(screen.model_, point));
}

GridCosts Screen::grid(const Point& point) const {
  GridCosts costs = probed_grid(model_, point);
  if (!gpus_.empty()) find_gpus(point, costs);
  return costs;
}

std::optional<ShapeCosts> Screen::shape(const Point& point) const {
  if (gpus_.empty()) return probed_shape(model_, point);
  std::vector<ShapeCosts> by_gpu;
  for (const Screen& screen : gpus_)
    if (auto costs = probed_shape(screen.model_, point)) by_gpu.push_back(std::move(*costs));
  if (by_gpu.size() < gpus_.size()) return {};
  ShapeCosts costs = by_gpu.front();
  costs.by_gpu = std::move(by_gpu);
  return costs;
}

// The times of all parts, and of the iteration. Transfers between ranks use the links of the real cluster.
TimedPoint Screen::timed(const Point& point, const GridCosts& grid, Parts& parts) const {
  const bool sharded = point.cuts().gradients && point.dp * point.cp > 1;
  for (Part& part : parts.all) {
    const PointTimes own = part.of(point);
    part.moving = own.moving();
    part.moving.hop = PointTimes(model_, point, *part.shape, grid).moving().hop;
    part.plain = part.moving;
    if (!point.overlap_p2p) block_while_sending(part.plain);
    part.times = part.plain;
    if (sharded) own.shard(part.times);
  }
  const double bound = mixed_bound(schedule_entry(point.schedule), parts.mixed(&Part::moving));
  const double closed = finished(point, grid, parts);
  return {.time = std::max(closed, PointTimes(model_, point, *parts.at(0).shape, grid).link_time()), .bound = bound};
}

// As with equal GPUs (estimate_tail.cpp); each rank has its own last backward and end.
double Screen::finished(const Point& point, const GridCosts& grid, const Parts& parts) const {
  const Part& front = parts.at(0);
  const double end =
      unequal_rank_time(schedule_entry(point.schedule), parts.mixed(&Part::times)) + front.of(point).late_start(front.times);
  std::vector<PointTimes::Tail> tails;
  const auto tail_of = [&](const Part& part, int kind) { return part.of(point).tail(part.times, kind); };
  for (int rank = 0; rank < point.pp; ++rank) {
    const bool same = rank > 1 && rank + 1 < point.pp && parts.of[index(rank)] == parts.of[index(rank - 1)];
    tails.push_back(same ? tails.back() : tail_of(parts.at(rank), kind_of(point, rank)));
  }
  if (point.pp > 1 && point.dp * point.cp > 1) {
    const PointTimes::Tail middle = point.pp > 2 ? tail_of(front, Middle) : PointTimes::Tail{};
    tails.front() = front.of(point).among_others(front.times, middle, tail_of(front, Last), tails.front());
  }
  const bool splits = schedule_entry(point.schedule).splits;  // all ranks end together
  double done = 0, slowed = 0, before = 0, first_end = 0, last_end = 0;
  for (const PointTimes::Tail& tail : tails) slowed += tail.slowed;
  for (int rank = 0; rank < point.pp; ++rank) {
    const PointTimes::Tail& tail = tails[index(rank)];
    const double own = splits ? end + tail.slowed : end + slowed - before;
    done = std::max(done, own + tail.all);
    if (rank == 0) first_end = own;
    last_end = own;
    slowed -= tail.slowed;
    before += parts.at(rank).times.backward[rank == 0 ? First : Middle] + parts.at(rank).times.hop;
  }
  if (!model_.tied || point.pp == 1) return done;
  const double both = PointTimes(model_, point, *front.shape, grid).tied_sum();
  const PointTimes::Tail &first = tails.front(), &last = tails.back();
  return std::max(done, std::max(first_end + first.tied, last_end + last.tied) + both + std::max(first.after, last.after));
}

// Estimates a point. Each rank recomputes the fewest layers with which it fits its GPU; if `full` and `none` are the same object, none.
Screened Screen::mixed(const Point& point, const ShapeCosts& none, const ShapeCosts& full, const GridCosts& grid) const {
  const double m = model_.microbatches(point);
  const ScreenedModel::Layers all = model_.layers_of(point);
  const int thin = model_.thinner(point);
  Parts parts;
  parts.all.reserve(index(point.pp));
  std::vector<ShapeCosts> mixed;
  mixed.reserve(index(point.pp));
  Screened screened;
  for (int rank = 0; rank < point.pp; ++rank) {
    const int kind = kind_of(point, rank), gpu = grid.gpu[index(rank)];
    const Screen& screen = gpus_[index(gpu)];
    const ShapeCosts &kept = none.by_gpu[index(gpu)], &redone = full.by_gpu[index(gpu)];
    const double layers = all[index(kind)] - (kind == Middle && rank <= thin && all[Middle] > 1 ? 1 : 0);
    const RankBytes memory = rank_memory(model_, point, kept, m, kind, rank, layers);
    const double own = kept.activations.of(kind, layers),
                 other = point.virtual_stages > 1 ? kept.activations.of(Middle, layers) : own;
    const double room = screen.capacity_, scratch = kept.scratch.of(kind, layers);
    const double fixed = memory.fixed + grid.framework + kept.workspace + own + (memory.flight - 1) * other;
    double bytes = fixed + scratch, count = 0;
    if (&none != &full && bytes > room) {
      const double freed = (kept.activations.layer - redone.activations.layer) * memory.flight;
      const double more = std::max(scratch, redone.scratch.of(kind, layers));
      count = freed > 0 ? std::clamp(std::ceil((fixed + more - room) / freed), 1.0, layers) : layers;
      bytes = fixed + more - count * freed;
    }
    screened.peak = std::max(screened.peak, bytes);
    screened.needs = std::max(screened.needs, bytes + capacity_ - room);
    const auto found = std::find_if(parts.all.begin(), parts.all.end(),
                                    [&](const Part& part) { return part.gpu == gpu && part.redone == count; });
    parts.of.push_back(static_cast<int>(found - parts.all.begin()));
    if (found != parts.all.end()) continue;
    if (count > 0)
      mixed.push_back(partly_redone(kept, redone, all[point.pp == 1 ? Only : Middle], {count, count, count, count}));
    parts.all.push_back({.screen = &screen,
                         .shape = count > 0 ? &mixed.back() : &kept,
                         .grid = &grid.by_gpu[index(gpu)],
                         .gpu = gpu,
                         .redone = count});
  }
  const TimedPoint found = timed(point, grid, parts);
  screened.time = found.time, screened.bound = found.bound;
  return screened;
}

}  // namespace foreshard
