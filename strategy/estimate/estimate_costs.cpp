#include "strategy/estimate/estimate_costs.h"

#include <algorithm>
#include <cmath>

#include "strategy/cost/communication_path.h"

namespace foreshard {

using enum stage_kind::Kind;

static double read(const GridCosts::Ladder& ladder, double bytes) {
  if (bytes <= 0) return 0;
  const int low = std::clamp(std::ilogb(bytes / GridCosts::kLeast) / 2, 0, GridCosts::kSizes - 2);  // steps of 4
  const double from = std::ldexp(GridCosts::kLeast, 2 * low);
  const auto i = static_cast<std::size_t>(low);
  return std::max(0.0, ladder[i] + (ladder[i + 1] - ladder[i]) * (bytes - from) / (from * (GridCosts::kStep - 1)));
}

Strategy strategy_at(const Strategy& base, const Point& point, int layers) {
  Strategy s = base;
  s.tp = point.tp, s.cp = point.cp, s.pp = point.pp, s.virtual_stages = point.virtual_stages, s.dp = point.dp;
  s.experts.ep = point.ep, s.experts.etp = point.etp;
  s.batch.micro = point.micro_batch;
  s.sequence_parallel = point.sequence_parallel;
  const bool tensor = point.overlap_tensor || s.communication.overlap.value_or(Overlap{}).tp;
  s.communication.overlap = Overlap{point.overlap_gradients, point.overlap_parameters, point.overlap_p2p, tensor};
  s.zero.stage = point.zero, s.zero.group = point.zero_group;
  if (const int stages = point.pp * point.virtual_stages; layers > 0 && layers % stages != 0 && s.pipeline.layer_split.empty())
    s.pipeline.layer_split = nearly_even_split(layers, stages);
  if (point.recompute != s.recompute.kind || point.recompute_layers != 0) s.recompute = {.kind = point.recompute};
  s.recompute.layers = point.recompute_layers;
  s.pipeline.schedule = point.schedule;
  if (point.order > 0) s.placement = rank_orders()[static_cast<std::size_t>(point.order)];
  return s;
}

const std::vector<RankOrder>& rank_orders() {
  using enum DenseKind;
  static const std::vector<RankOrder> orders = {default_rank_order(), with_outer_data({Tensor, Context, std::nullopt, Data}),
                                                with_outer_data({Data, Tensor, Context, std::nullopt}),
                                                with_outer_data({std::nullopt, Tensor, Context, Data})};
  return orders;
}

std::array<int, 4> layers_by_kind(int layers, int stages) {
  const int few = layers / stages, more = layers % stages;  // `more` stages have one layer more
  return {more > stages - 2 ? few + (more > 0 ? 1 : 0) : few, more > 0 ? few + 1 : few, few, layers};
}

std::string nearly_even_split(int layers, int stages) {
  const auto [first, middle, last, only] = layers_by_kind(layers, stages);
  std::string text;
  const auto add = [&](int each, int count) {
    if (count > 0) text += (text.empty() ? "" : ",") + std::to_string(each) + (count > 1 ? "x" + std::to_string(count) : "");
  };
  const int between = stages - 2, more = layers - first - last - between * last;
  add(first, 1);
  add(last, between - more);
  add(last + 1, more);
  add(last, 1);
  return stages == 1 ? std::to_string(only) : text;
}

int stride_of(const Point& point) { return point.order == 2 ? point.dp : point.order == 3 ? point.pp : 1; }

ShapeCosts partly_redone(const ShapeCosts& none, const ShapeCosts& full, double layers, const std::array<double, 4>& redone) {
  ShapeCosts mixed = none;
  const auto mix = [&](PerStage& to, const PerStage& with) {
    const double more = with.layer - to.layer;
    for (std::size_t kind = 0; kind < to.one.size(); ++kind)
      to.one[kind] += redone[kind] * more;  // `of` is asked for this number of layers only
  };
  const auto larger = [&](PerStage& to, const PerStage& with) {
    for (std::size_t kind = 0; kind < to.one.size(); ++kind)
      to.one[kind] = redone[kind] == 0
                         ? to.of(static_cast<int>(kind), layers)
                         : std::max(to.of(static_cast<int>(kind), layers), with.of(static_cast<int>(kind), layers));
    to.layer = 0;
  };
  mix(mixed.backward, full.backward);
  mix(mixed.communication, full.communication);
  mixed.head += redone[Middle] / layers * (full.head - none.head);
  mix(mixed.activations, full.activations);
  larger(mixed.scratch, full.scratch);
  for (std::size_t gpu = 0; gpu < mixed.by_gpu.size(); ++gpu)
    mixed.by_gpu[gpu] = partly_redone(none.by_gpu[gpu], full.by_gpu[gpu], layers, redone);
  return mixed;
}

// How much longer a large collective takes in the block of `members` consecutive GPUs that crosses most nodes than in the first block.
static double crossing(const Network& network, int gpus, int members, CollectiveKind kind) {
  const auto nodes_of = [&](int first) { return network.node({first + members - 1}) - network.node({first}); };
  int widest = 0;
  for (int first = 0; first + members <= gpus; first += members)
    if (nodes_of(first) > nodes_of(widest)) widest = first;
  if (members < 2 || widest == 0) return 1;
  const auto seconds = [&](int first) {
    std::vector<DeviceId> devices;
    for (int i = 0; i < members; ++i) devices.push_back({first + i});
    const Collective what{.kind = kind, .algorithm = Algorithm::Ring, .bytes = {std::int64_t{1} << 26}};
    const CommunicationPath path = communication_path(network, what, devices);
    const Cost cost = collective_cost(network.gpu({first}), what, path);
    return to_seconds(cost.busy).value + path.flow.value * cost.wire_factor;
  };
  return std::max(1.0, seconds(widest) / seconds(0));
}

void measure_crossings(const Cluster& cluster, const Point& point, GridCosts& grid) {
  const Network network(cluster);
  if (network.nodes() == 1 || stride_of(point) != 1) return;
  const int gpus = point.tp * point.cp * point.pp * point.dp;
  grid.tensor_across = crossing(network, gpus, point.tp, CollectiveKind::AllReduce);
  grid.rows_across = crossing(network, gpus, point.ep * point.etp, CollectiveKind::AllToAll);
}

ShapeCosts across_nodes(const ShapeCosts& shape, const GridCosts& grid) {
  ShapeCosts slow = shape;
  const auto longer = [&](double communication, double rows) {
    rows = std::min(rows, communication);
    return (grid.tensor_across - 1) * (communication - rows) + (grid.rows_across - 1) * rows;
  };
  const double forth = longer(shape.forward_communication.layer, shape.rows_forward);
  const double back = longer(shape.communication.layer - shape.forward_communication.layer, shape.rows_backward);
  const auto add = [](PerStage& to, double more) {
    to.layer += more;
    for (double& one : to.one) one += more;
  };
  add(slow.forward, forth), add(slow.forward_communication, forth), add(slow.backward, back);
  add(slow.communication, forth + back);
  return slow;
}

static std::size_t place_of(CollectiveKind kind) {
  return kind == CollectiveKind::AllReduce ? 0 : kind == CollectiveKind::ReduceScatter ? 1 : 2;
}
double GridCosts::collective_time(CollectiveKind kind, double bytes) const { return read(collective[place_of(kind)], bytes); }
double GridCosts::experts_time(CollectiveKind kind, double bytes) const { return read(experts[place_of(kind)], bytes); }
double GridCosts::replicas_time(double bytes) const { return read(replicas, bytes); }
double GridCosts::tied_time(double bytes) const { return read(tied, bytes); }

double shards_of(const Point& point) {
  if (!point.cuts().optimizer) return 1;
  return static_cast<double>(point.zero_group > 0 ? point.zero_group : point.dp) * point.cp;
}

double expert_shards_of(const Point& point) { return point.cuts().optimizer ? point.expert_replicas() : 1; }

SaturatedOverlap::SaturatedOverlap(const GridCosts& grid, double alone, double own, double over_groups) {
  const auto mixed = [&](double shards, double groups) { return shards + (groups - shards) * over_groups; };
  const double computes = (alone - own) / (1 - grid.share);
  const double communicating = own / mixed(grid.tensor_speed, grid.tensor_beside_replicas);
  time = computes + communicating, carried = computes + communicating * mixed(grid.shards_speed, grid.replicas_speed);
}

double time_beside(const GridCosts& grid, double time, double own, double communication) {
  if (communication <= 0 || time <= 0) return time;
  const SaturatedOverlap dense(grid, time, own);
  return communication < dense.carried ? time + (dense.time - time) * communication / dense.carried
                                       : dense.time + communication - dense.carried;
}

}  // namespace foreshard
