// The ways between ranks that are not equally near, or where stages share a NIC.
#include <algorithm>

#include "strategy/estimate_alone.h"
#include "strategy/estimate_screen.h"
#include "strategy/framework_preset.h"
#include "strategy/plan_costs.h"

namespace foreshard {

// A plan of ranks alone that send to their neighbours.
static Plan plan_of_ranks(const Point& point, const Strategy& base, const Cluster& cluster) {
  Plan plan;
  plan.axes = {{"dp", point.dp}, {"cp", point.cp}, {"tp", point.tp}};
  const bool given = point.order == 0 && !base.placement.empty();
  plan.placement.order = given ? base.placement : rank_orders()[static_cast<std::size_t>(point.order)];
  std::erase(plan.placement.order, "dp_outer");
  for (const int shift : {1, -1, 1 - point.pp, point.pp - 1}) {
    Segment segment;
    for (const std::int64_t bytes : {std::int64_t{1} << 20, std::int64_t{1} << 30})
      segment.instructions.push_back({.what = Exchange{.to = Peer{.role_shift = shift}, .bytes = {bytes}}, .stream = {0}});
    plan.segments.push_back(std::move(segment));
  }
  const auto segments = [&](int role) {  // output, gradient
    return std::pair(role + 1 == point.pp ? 2 : 0, role == 0 ? 3 : 1);
  };
  for (int role = 0; role < point.pp; ++role)
    plan.roles.push_back({.name = std::to_string(role),
                          .device_kind = cluster.nodes.front().shape.gpu,
                          .axes = {AxisId{0}, AxisId{1}, AxisId{2}},
                          .streams = {{"communication", StreamKind::Communication}},
                          .actions = {{.segment = {segments(role).first}}, {.segment = {segments(role).second}}}});
  return plan;
}

Ways Screen::ways(const Point& point) const {
  const NodeShape& node = cluster_.nodes.front().shape;
  if (point.pp == 1 || point.pp > Ways::kMost || node.nics >= node.gpus) return {};
  Plan plan = plan_of_ranks(point, base_, cluster_);
  cost_plan(plan, cluster_, framework_preset(base_.framework), profile_);
  AloneTimes alone(plan, cluster_);
  Ways ways{.ranks = point.pp};
  std::vector<std::vector<int>> lanes;  // kinds, each of which meets all others
  const auto read = [&](int role, int segment) {
    const auto s = static_cast<std::size_t>(segment);
    const std::vector<Instruction>& runs = plan.segments[s].instructions;
    const std::vector<Cost>& costs = plan.costs.front().by_segment[s];
    const double small = alone.duration({role}, runs[0], costs[0]), large = alone.duration({role}, runs[1], costs[1]);
    Ways::Way way{.per_byte = (large - small) / ((1 << 30) - (1 << 20))};
    way.latency = std::max(0.0, small - way.per_byte * (1 << 20));
    way.share = costs[0].sm_share;
    const int kind = alone.kind({role}, runs[0]);
    const auto lane = std::find_if(lanes.begin(), lanes.end(), [&](const std::vector<int>& with) {
      return kind >= 0 &&
             std::all_of(with.begin(), with.end(), [&](int other) { return other >= 0 && alone.meet(kind, other); });
    });
    way.lane = static_cast<int>(lane - lanes.begin());
    if (lane == lanes.end())
      lanes.push_back({kind});
    else
      lane->push_back(kind);
    return way;
  };
  for (int role = 0; role < point.pp; ++role) {
    const auto r = static_cast<std::size_t>(role);
    ways.output[r] = read(role, role + 1 == point.pp ? 2 : 0);
  }
  for (int role = 0; role < point.pp; ++role) ways.gradient[static_cast<std::size_t>(role)] = read(role, role == 0 ? 3 : 1);
  return ways;
}

GridCosts Screen::grid_costs(const Point& point) const {
  GridCosts costs = grid(point);
  costs.ways = ways(point);
  return costs;
}

static bool shares_nics(const Cluster& cluster) { return cluster.nodes.front().shape.nics < cluster.nodes.front().shape.gpus; }

// Its links are so fast that no transfer stands beside a compute for long.
static Cluster with_fast_links(Cluster cluster) {
  constexpr double kFaster = 1e4;
  for (NodeGroup& group : cluster.nodes) {
    group.shape.nic_bandwidth = group.shape.nic_bandwidth * kFaster;
    for (NodeLink& link : group.shape.links) link.bandwidth = link.bandwidth * kFaster;
  }
  return cluster;
}

// Computes of `apart`, communication of `shape`.
static PerStage computes_of(const PerStage& apart, const PerStage& its_talk, const PerStage& talk) {
  PerStage result = apart;
  for (std::size_t kind = 0; kind < result.one.size(); ++kind) result.one[kind] += talk.one[kind] - its_talk.one[kind];
  result.layer += talk.layer - its_talk.layer;
  return result;
}

std::optional<ShapeCosts> Screen::shape_costs(const Point& point) const {
  auto costs = shape(point);
  if (!costs || !shares_nics(cluster_) || point.pp == 1) return costs;
  const Cluster fast = with_fast_links(cluster_);
  const ShapeCosts apart = *Screen(model_, fast, base_, profile_).shape(point);
  const auto backward_talk = [](const ShapeCosts& of) { return computes_of(of.communication, of.forward_communication, {}); };
  costs->forward = computes_of(apart.forward, apart.forward_communication, costs->forward_communication);
  costs->backward = computes_of(apart.backward, backward_talk(apart), backward_talk(*costs));
  costs->weights = apart.weights;
  return costs;
}

}  // namespace foreshard
