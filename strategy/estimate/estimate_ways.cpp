// The ways between ranks that are not equally near, or where stages share a NIC.
#include <algorithm>

#include "strategy/cost/framework_preset.h"
#include "strategy/cost/plan_costs.h"
#include "strategy/estimate/estimate_alone.h"
#include "strategy/estimate/estimate_screen.h"

namespace foreshard {

// A plan of ranks alone that send to their neighbours.
static Plan plan_of_ranks(const Point& point, const Strategy& base, const Cluster& cluster) {
  Plan plan;
  const int shards = point.zero_group > 0 ? point.zero_group : point.dp;
  plan.axes = {{"dp", shards}, {"cp", point.cp}, {"tp", point.tp}, {"dp_outer", point.dp / shards}};
  plan.groups = {{"data", {}, {AxisId{0}, AxisId{1}, AxisId{3}}},
                 {"shards", {}, {AxisId{0}, AxisId{1}}},
                 {"replicas", {}, {AxisId{3}}},
                 {"tensor", {}, {AxisId{point.tp > 1 ? 2 : 1}}}};
  const bool given = point.order == 0 && !base.placement.empty();
  plan.placement.order = given ? base.placement : rank_orders()[static_cast<std::size_t>(point.order)];
  if (std::find(plan.placement.order.begin(), plan.placement.order.end(), "dp_outer") == plan.placement.order.end())
    plan.placement.order.insert(std::find(plan.placement.order.begin(), plan.placement.order.end(), "dp") + 1, "dp_outer");
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
                          .axes = {AxisId{0}, AxisId{1}, AxisId{2}, AxisId{3}},
                          .streams = {{"communication", StreamKind::Communication}},
                          .actions = {{.segment = {segments(role).first}}, {.segment = {segments(role).second}}}});
  return plan;
}

// Drops links that cannot be full, and those that are never fuller than another that holds up the same.
static void keep_tightest(std::vector<std::vector<AloneTimes::Crossing>>& columns) {
  const auto could_be_full = [](const std::vector<AloneTimes::Crossing>& column) {
    double asked = 0;
    for (const AloneTimes::Crossing& crossing : column) asked += crossing.share;
    return asked > 1 + 1e-9;
  };
  const auto within = [](const std::vector<AloneTimes::Crossing>& a, const std::vector<AloneTimes::Crossing>& b) {
    return std::equal(a.begin(), a.end(), b.begin(), [](const AloneTimes::Crossing& of_a, const AloneTimes::Crossing& of_b) {
      return of_a.share <= of_b.share * (1 + 1e-9) && (!of_a.own || of_b.own);
    });
  };
  std::vector<std::vector<AloneTimes::Crossing>> kept;
  for (std::vector<AloneTimes::Crossing>& column : columns) {
    if (!could_be_full(column)) continue;
    if (std::any_of(kept.begin(), kept.end(), [&](const auto& other) { return within(column, other); })) continue;
    std::erase_if(kept, [&](const auto& other) { return within(other, column); });
    if (kept.size() < Links::kLinks) kept.push_back(std::move(column));
  }
  columns = std::move(kept);
}

// Links that could be full, numbered, and what crosses them. `kinds`: of all transfers both ways.
static Links links_of(const Point& point, const Strategy& base, DType dtype, const std::vector<int>& kinds, AloneTimes& alone) {
  const auto collective = [&](int role, CollectiveKind kind, int group) {
    const Collective what{
        .kind = kind, .algorithm = base.algorithm, .group = {group}, .bytes = {std::int64_t{1} << 20}, .dtype = dtype};
    return alone.kind({role}, {.what = what, .stream = {0}});
  };
  struct Found {
    int kind = -1;
    Links::Traffic* traffic = nullptr;
  };
  Links links;
  std::vector<Found> all;
  for (int role = 0; role < point.pp; ++role) {
    const auto r = static_cast<std::size_t>(role);
    const auto flow = [&](Links::Flow which) { return &links.traffic[static_cast<std::size_t>(Links::flow(role, which))]; };
    all.push_back({collective(role, CollectiveKind::AllReduce, 0), &links.sums[r]});
    all.push_back({collective(role, CollectiveKind::ReduceScatter, 1), flow(Links::Shards)});
    all.push_back({collective(role, CollectiveKind::AllReduce, 2), flow(Links::Replicas)});
    all.push_back({collective(role, CollectiveKind::AllReduce, 3), &links.tensors[r]});
    all.push_back({kinds[r], flow(Links::Output)});
    all.push_back({kinds[static_cast<std::size_t>(point.pp + role)], flow(Links::Gradient)});
  }
  // [link][of all]: what crosses it.
  std::vector<std::vector<AloneTimes::Crossing>> columns(static_cast<std::size_t>(alone.crossings()));
  double fastest = 0;
  for (std::size_t i = 0; i < all.size(); ++i) {
    if (all[i].kind < 0) continue;
    fastest = std::max(fastest, alone.rate(all[i].kind));
    for (const AloneTimes::Crossing& crossing : alone.crossed(all[i].kind)) {
      std::vector<AloneTimes::Crossing>& column = columns[static_cast<std::size_t>(crossing.which)];
      column.resize(all.size());
      column[i] = crossing;
    }
  }
  keep_tightest(columns);
  for (Found& each : all)
    if (each.kind >= 0) each.traffic->growth = fastest / alone.rate(each.kind);
  links.links = static_cast<int>(columns.size());
  for (std::size_t link = 0; link < columns.size(); ++link)
    for (std::size_t i = 0; i < all.size(); ++i)
      if (const AloneTimes::Crossing& crossing = columns[link][i]; crossing.share > 0)
        all[i].traffic->crosses.push_back({static_cast<int>(link), crossing.share, crossing.own});
  links.find_slower(point.pp);
  return links;
}

// A lane is a link: kinds that all meet each other. A way has one at either end.
static void find_lanes(const std::vector<int>& kinds, const AloneTimes& alone, std::vector<Ways::Way>& ways) {
  std::vector<std::vector<std::size_t>> lanes;
  const auto meet = [&](std::size_t a, std::size_t b) {
    return a == b || (kinds[a] >= 0 && kinds[b] >= 0 && alone.meet(kinds[a], kinds[b]));
  };
  std::vector<std::vector<int>> of(ways.size());
  const auto together = [&](std::size_t a, std::size_t b) {
    return std::any_of(of[a].begin(), of[a].end(),
                       [&](int lane) { return std::find(of[b].begin(), of[b].end(), lane) != of[b].end(); });
  };
  for (std::size_t way = 0; way < ways.size(); ++way)
    for (std::size_t with = 0; with <= way; ++with) {
      if (!meet(way, with) || together(way, with) || of[way].size() == 2 || of[with].size() == 2) continue;
      if (with == way && !of[way].empty()) continue;
      std::vector<std::size_t> lane;  // all later ones that meet these two and each other
      for (std::size_t each = 0; each < ways.size(); ++each)
        if (meet(each, way) && meet(each, with) && of[each].size() < 2 &&
            std::all_of(lane.begin(), lane.end(), [&](std::size_t other) { return meet(each, other); }))
          lane.push_back(each);
      for (const std::size_t each : lane) of[each].push_back(static_cast<int>(lanes.size()));
      lanes.push_back(lane);
    }
  for (std::size_t way = 0; way < ways.size(); ++way) {
    ways[way].lane = of[way].empty() ? 0 : of[way].front();
    ways[way].other = of[way].size() > 1 ? of[way][1] : -1;
  }
}

Ways Screen::ways(const Point& point) const {
  const NodeShape& node = cluster_.nodes.front().shape;
  if (point.pp == 1 || point.pp > Ways::kMost || node.nics >= node.gpus) return {};
  Plan plan = plan_of_ranks(point, base_, cluster_);
  cost_plan(plan, cluster_, framework_preset(base_.framework), profile_);
  AloneTimes alone(plan, cluster_);
  Ways ways{.ranks = point.pp};
  std::vector<int> kinds;
  std::vector<Ways::Way> all;
  const auto read = [&](int role, int segment) {
    const auto s = static_cast<std::size_t>(segment);
    const std::vector<Instruction>& runs = plan.segments[s].instructions;
    const std::vector<Cost>& costs = plan.costs.front().by_segment[s];
    const double small = alone.duration({role}, runs[0], costs[0]), large = alone.duration({role}, runs[1], costs[1]);
    Ways::Way way{.per_byte = (large - small) / ((1 << 30) - (1 << 20))};
    way.latency = std::max(0.0, small - way.per_byte * (1 << 20));
    way.share = costs[0].sm_share;
    const int kind = alone.kind({role}, runs[0]);
    kinds.push_back(kind), all.push_back(way);
  };
  for (int role = 0; role < point.pp; ++role) read(role, role + 1 == point.pp ? 2 : 0);
  for (int role = 0; role < point.pp; ++role) read(role, role == 0 ? 3 : 1);
  find_lanes(kinds, alone, all);
  const auto outputs = all.begin(), gradients = all.begin() + point.pp;
  std::copy(outputs, gradients, ways.output.begin()), std::copy(gradients, all.end(), ways.gradient.begin());
  ways.links = links_of(point, base_, types_.grad, kinds, alone);
  return ways;
}

GridCosts Screen::grid_costs(const Point& point) const {
  GridCosts costs = grid(point);
  costs.ways = ways(point);
  if (!gpus_.empty()) find_gpus(point, costs);
  return costs;
}

bool Screen::shares_nics() const { return cluster_.nodes.front().shape.nics < cluster_.nodes.front().shape.gpus; }

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
  if (!gpus_.empty()) {
    std::vector<ShapeCosts> by_gpu;
    for (const Screen& screen : gpus_)
      if (auto costs = screen.shape_costs(point)) by_gpu.push_back(std::move(*costs));
    if (by_gpu.size() < gpus_.size()) return {};
    ShapeCosts costs = by_gpu.front();
    costs.by_gpu = std::move(by_gpu);
    return costs;
  }
  auto costs = shape(point);
  if (!costs || !shares_nics()) return costs;
  const Cluster fast = with_fast_links(cluster_);
  const ShapeCosts apart = *Screen(model_, fast, base_, profile_).shape(point);
  const auto backward_talk = [](const ShapeCosts& of) { return computes_of(of.communication, of.forward_communication, {}); };
  costs->forward = computes_of(apart.forward, apart.forward_communication, costs->forward_communication);
  costs->backward = computes_of(apart.backward, backward_talk(apart), backward_talk(*costs));
  costs->weights = apart.weights;
  return costs;
}

}  // namespace foreshard
