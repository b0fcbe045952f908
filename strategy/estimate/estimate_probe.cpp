#include "strategy/estimate/estimate_probe.h"

#include <algorithm>
#include <numeric>

#include "core/plan/cost_tables.h"
#include "core/result/memory_timeline.h"
#include "strategy/cost/framework_memory.h"
#include "strategy/cost/framework_preset.h"
#include "strategy/cost/plan_costs.h"
#include "strategy/cost/settle_algorithms.h"
#include "strategy/estimate/isolated_action.h"
#include "strategy/estimate/isolated_times.h"
#include "strategy/resolve/resolve.h"

namespace foreshard {

using enum stage_kind::Kind;

namespace {

// Measurements of one probe, a small plan.
struct Probe {
  std::vector<StageDurations> stages = {};
  std::vector<double> parameters = {}, frozen = {}, experts = {}, activations = {}, scratch = {};  // [role]
  double head = 0, rest = 0, rows_forward = 0, rows_backward = 0;  // ShapeCosts, of a layer in the middle
};

bool touches(const Role& role, const std::vector<Use>& uses, Category category, Bytes least) {
  return std::any_of(uses.begin(), uses.end(), [&](const Use& use) {
    const Buffer& buffer = role.buffers[use.buffer.index()];
    return buffer.category == category && use.length.value_or(buffer.bytes) >= least;
  });
}

// Measures Probe::head, rest and the all-to-alls on the compute stream of a middle layer, since the embedding and the head differ from other layers.
// `partial`: small gradients, which tensor ranks sum, do not count as weight gradients; they are reduced separately.
void read_layer(const Plan& plan, const Cluster& cluster, bool partial, Probe& probe) {
  constexpr Bytes kSmall{1 << 17};
  IsolatedTimes alone(plan, cluster);
  const RoleId id{plan.roles.size() > 2 ? 1 : 0};
  const Role& role = plan.roles[id.index()];
  const LayerId layer{static_cast<std::int32_t>(role.layers.size() / 2)};
  for (const Work work : {Work::F, Work::B}) {
    const auto action = std::find_if(role.actions.begin(), role.actions.end(),
                                     [&](const Action& each) { return !each.does.empty() && each.does.front().work == work; });
    if (action == role.actions.end()) continue;
    const Segment& segment = plan.segments[action->segment.index()];
    const IsolatedAction times = isolated_action(plan, alone, id, static_cast<int>(action - role.actions.begin()));
    const std::vector<Cost>& costs = costs_of(plan, role).by_segment[action->segment.index()];
    double before = 0, after = 0, end = 0;
    bool begun = false;
    for (std::size_t i = 0; i < segment.instructions.size(); ++i) {
      const Instruction& run = segment.instructions[i];
      const auto* sent = std::get_if<Collective>(&run.what);
      if (sent && sent->kind == CollectiveKind::AllToAll && run.layer == layer)
        (work == Work::F ? probe.rows_forward : probe.rows_backward) += alone.duration(id, run, costs[i]);
      if (run.stream.value != 0) continue;
      const double seconds = times.ends[i] - std::exchange(end, times.ends[i]);  // what it waits for included
      if (run.layer != layer) continue;
      const bool meets = work == Work::F ? touches(role, run.reads, Category::Parameters, {})
                                         : touches(role, run.writes, Category::Gradients, partial ? kSmall : Bytes{});
      begun |= meets;
      if (!begun) before += seconds;
      after = meets ? 0 : after + seconds;
    }
    (work == Work::F ? probe.rest : probe.head) = work == Work::F ? after : before + after;
  }
}

Probe read_probe(const Plan& plan, const Cluster& cluster, Bytes param, bool partial) {
  Probe probe{.stages = stage_durations(plan, cluster)};
  for (const Role& role : plan.roles) {
    double elements = 0, frozen = 0, experts = 0, resident = 0, each = 0, all = 0;
    for (const Buffer& buffer : role.buffers) {
      const auto bytes = static_cast<double>(buffer.bytes.value);
      const Tensor* held = buffer.holds.empty() ? nullptr : &plan.tensors[buffer.holds.front().tensor.index()];
      if (buffer.resident && buffer.category == Category::Parameters)
        (held && held->frozen                 ? frozen
         : held && held->grid == Grid::Expert ? experts
                                              : elements) += bytes / static_cast<double>(param.value);
      if (buffer.resident) resident += bytes;
      if (buffer.resident || buffer.category != Category::Activations) continue;
      each += bytes;
      all += bytes * static_cast<double>(buffer.offsets.size());
    }
    probe.parameters.push_back(elements);
    probe.frozen.push_back(frozen);
    probe.experts.push_back(experts);
    probe.activations.push_back(each);
    probe.scratch.push_back(std::max(0.0, static_cast<double>(arena_bytes(role, Space::Device).value) - resident - all));
  }
  read_layer(plan, cluster, partial, probe);
  return probe;
}

template <class Of>
PerStage per_stage(std::size_t roles, Of of) {  // of(layers per stage, role)
  PerStage result;
  const std::size_t last = roles - 1, middle = roles > 2 ? 1 : 0;
  result.layer = of(2, middle) - of(1, middle);
  result.one = {of(1, 0), of(1, middle), of(1, last), of(1, 0) + (roles > 1 ? of(1, last) - of(1, middle) : 0.0)};
  if (roles == 2) result.one[Only] = of(1, 0) + of(1, last) - result.layer, result.one[Middle] = result.layer;
  return result;
}

}  // namespace

// Where other axes put ranks between those of a tensor group: adds them to the probe as one more axis, the fastest.
static void pad_ranks(Plan& plan, const Cluster& cluster, const FrameworkPreset& preset, const MachineProfile* profile,
                      int stride) {
  if (stride == 1) return;
  const AxisId between{static_cast<std::int32_t>(plan.axes.size())};
  plan.axes.push_back({.name = "between", .size = stride});
  for (Role& role : plan.roles) role.axes.push_back(between);
  plan.placement.order.insert(plan.placement.order.begin(), between);
  cost_plan(plan, cluster, preset, profile);
}

// Where the stages themselves lie between: the probe then has as few stages as keep that pattern (two or three, if they divide pp).
int roles_between(const Point& point) {
  if (point.order != 3) return 1;
  return point.pp % 3 == 0 ? point.pp / 3 : point.pp % 2 == 0 ? point.pp / 2 : 1;
}

// Measured loads of all layers as those of one: a probe has fewer layers. The layers' own loads are refined.
static ExpertLoad mean_of_layers(ExpertLoad load) {
  if (load.measured.size() < 2) return load;
  std::vector<double> mean(load.measured.front().size());
  for (const std::vector<double>& layer : load.measured) {
    const double sum = std::accumulate(layer.begin(), layer.end(), 0.0);
    for (std::size_t e = 0; e < mean.size(); ++e) mean[e] += layer[e] / sum;
  }
  load.measured = {std::move(mean)};
  return load;
}

std::optional<ShapeCosts> probed_shape(const ScreenedModel& of, const Point& point) {
  Point at = point;
  int between = stride_of(point);
  at.virtual_stages = 1;
  // The fewest replicas among which the experts of a layer are shared.
  at.dp = at.ep * at.etp / std::gcd(at.ep * at.etp, at.tp * at.cp);
  at.zero = 0;
  at.overlap_gradients = at.overlap_p2p = true;
  at.schedule = Schedule::OneFOneB;
  at.recompute_layers = 0;
  if (point.order == 3) {
    between = roles_between(point);
    at.pp = point.pp / between;
  } else {
    at.order = 0;
    at.pp = std::clamp(gpu_count(of.cluster) / (point.tp * point.cp * at.dp * between), 1, 3);
  }
  std::array<Probe, 2> probes;
  double hop_bytes = 0, workspace = 0;
  for (int layers = 1; layers <= 2; ++layers) {
    Model model = of.model;
    auto& transformer = std::get<Transformer>(model.shape);
    transformer.layers = layers * at.pp;
    transformer.block.experts.layers
        .clear();  // the layers of a probe are alike; the few that are dense are refined as they are
    Strategy s = strategy_at(of.base, at);
    s.pipeline.layer_split.clear();
    s.zero.group = 0;
    s.experts.load = mean_of_layers(std::move(s.experts.load));
    // Recomputation of named layers, and schedules of whole chains, cannot be probed: all layers count as recomputed.
    if (names_layers(s.recompute)) s.recompute = {.kind = RecomputeKind::Full};
    s = without_open_choices(std::move(s));
    s.batch.global = point.micro_batch * 4 * at.dp;
    auto answer = lower(model, of.cluster, s, {.ignore_memory = true, .pack_by_order = false, .profile = of.profile});
    if (std::holds_alternative<Infeasible>(answer)) return {};
    Plan& plan = std::get<Lowered>(answer).plan;
    pad_ranks(plan, of.cluster, framework_preset(of.base.framework), of.profile, between);
    probes[static_cast<std::size_t>(layers) - 1] =
        read_probe(plan, of.cluster, size_of(of.types.param), point.sequence_parallel);
    if (s.device_memory.framework == measured_outside(of.profile, of.cluster)) s.device_memory.framework.reset();
    workspace = static_cast<double>(attention_workspace(plan, of.cluster, s).value);
    for (const Segment& segment : plan.segments)
      for (const Instruction& run : segment.instructions)
        if (const auto* what = std::get_if<Exchange>(&run.what); what && what->to && what->to->role_shift != 0)
          hop_bytes = static_cast<double>(what->bytes.value);
  }
  const auto roles = static_cast<std::size_t>(at.pp);
  const auto probe = [&](int layers) -> const Probe& { return probes[static_cast<std::size_t>(layers) - 1]; };
  ShapeCosts costs;
  costs.forward = per_stage(roles, [&](int n, std::size_t role) { return probe(n).stages[role].forward; });
  costs.backward = per_stage(roles, [&](int n, std::size_t role) { return probe(n).stages[role].backward; });
  costs.weights = per_stage(roles, [&](int n, std::size_t role) { return probe(n).stages[role].weights; });
  costs.communication = per_stage(roles, [&](int n, std::size_t role) { return probe(n).stages[role].communication; });
  costs.forward_communication =
      per_stage(roles, [&](int n, std::size_t role) { return probe(n).stages[role].forward_communication; });
  costs.head = probe(2).head, costs.rest = probe(2).rest;
  costs.rows_forward = probe(2).rows_forward, costs.rows_backward = probe(2).rows_backward;
  costs.parameters = per_stage(roles, [&](int n, std::size_t role) { return probe(n).parameters[role]; });
  costs.frozen = per_stage(roles, [&](int n, std::size_t role) { return probe(n).frozen[role]; });
  if (of.tied && roles > 1)  // the ends of a probe have a copy each
    (of.base.optimizer.lora.any() ? costs.frozen : costs.parameters).one[Only] -= of.tied_elements(point.tp);
  costs.experts = per_stage(roles, [&](int n, std::size_t role) { return probe(n).experts[role]; });
  costs.activations = per_stage(roles, [&](int n, std::size_t role) { return probe(n).activations[role]; });
  costs.scratch = per_stage(roles, [&](int n, std::size_t role) { return probe(n).scratch[role]; });
  if (roles == 2) costs.scratch.one[Middle] = costs.scratch.one[First];
  costs.hop_bytes = hop_bytes, costs.workspace = workspace;
  return costs;
}

// Factor on the isolated time of a collective when all stages on the node run theirs at once.
static double contention(IsolatedTimes& alone, const Instruction& run, int stages) {
  constexpr int kMost = 16;  // neighbours share a node
  const int own = alone.kind({0}, run);
  if (own < 0) return 1;
  std::vector<int> kinds = {own};
  for (int role = 1; role < std::min(stages, kMost); ++role)
    if (const int other = alone.kind({role}, run); other >= 0 && alone.meet(own, other)) kinds.push_back(other);
  return 1 / alone.speeds(kinds).front();
}

// The loads of a pipeline on its links, measured at its first ranks, since neighbours share a node. `flows`: a collective of each kind.
static LinkLoads read_loads(IsolatedTimes& alone, int stages, const std::array<Instruction, kFlows>& flows) {
  constexpr int kMost = 16;
  const int first = std::min(stages, kMost);
  struct Collective {
    int kind = -1;
    std::size_t flow = 0, end = 0;
  };
  struct Transfer {
    int kind = -1;
    bool wraps = false;
  };
  std::vector<Collective> collectives;
  std::vector<Transfer> transfers;
  const auto send = [&](int role, int shift, bool wraps) {
    const Instruction run{.what = Exchange{.to = Peer{.role_shift = shift}, .bytes = {1 << 20}}, .stream = {0}};
    transfers.push_back({alone.kind({role}, run), wraps});
  };
  for (int role = 0; role < first; ++role) {
    const std::size_t end = role == 0 ? 0 : role + 1 == stages ? 2 : 1;
    for (std::size_t flow = 0; flow < kFlows; ++flow) collectives.push_back({alone.kind({role}, flows[flow]), flow, end});
    if (role + 1 < first) send(role, 1, false), send(role + 1, -1, false);
  }
  if (stages > 1) send(stages - 1, 1 - stages, true), send(0, stages - 1, true);
  LinkLoads loads;
  loads.links.resize(static_cast<std::size_t>(alone.crossings()));
  const auto each_link = [&](int kind, const auto& visit) {
    if (kind < 0) return;
    for (const IsolatedTimes::Crossing& crossing : alone.crossed(kind))
      visit(loads.links[static_cast<std::size_t>(crossing.which)], crossing.share);
  };
  for (const auto& [kind, flow, end] : collectives)
    each_link(kind, [&](LinkLoads::Link& link, double share) { link.collectives[flow][end] += share; });
  for (const auto& [kind, wraps] : transfers)
    each_link(kind, [&](LinkLoads::Link& link, double share) {
      (wraps ? link.wraps : link.neighbours) += share * alone.per_byte(kind);
    });
  loads.keep_fullest();
  return loads;
}

// All axes, of size 1 too: those of the groups have fixed places.
std::vector<Axis> axes_of(const Point& point) {
  const int shards = point.zero_group > 0 ? point.zero_group : point.dp;
  return {{.name = axis_name(DenseKind::Data), .dense = DenseKind::Data, .size = shards},
          {.name = axis_name(DenseKind::Context), .dense = DenseKind::Context, .size = point.cp},
          {.name = axis_name(DenseKind::Tensor), .dense = DenseKind::Tensor, .size = point.tp},
          {.name = axis_name(DenseKind::OuterData), .dense = DenseKind::OuterData, .size = point.dp / shards}};
}

RankOrder order_of(const Strategy& base, const Point& point) {
  const bool given = point.order == 0 && !base.placement.empty();
  return with_outer_data(given ? base.placement : rank_orders()[static_cast<std::size_t>(point.order)]);
}

bool shares_nics(const Cluster& cluster) { return cluster.nodes.front().shape.nics < cluster.nodes.front().shape.gpus; }

static double outside_arena(const Strategy& base, const Point& point) {
  Strategy s;
  s.tp = point.tp, s.cp = point.cp, s.pp = point.pp, s.dp = point.dp;
  s.device_memory.framework = base.device_memory.framework;
  return static_cast<double>(framework_memory(s).value);
}

// Measures collectives over the replicas of an expert. In the default order of ranks, neighbouring replicas are as far apart as the number
// of ranks that share the experts of a layer.
static void measure_experts(const ScreenedModel& of, const Point& point, GridCosts& grid) {
  const int replicas = point.expert_replicas();
  if (std::get<Transformer>(of.model.shape).block.experts.count == 0 || replicas == 1) return;
  Plan plan;
  plan.axes = {{.name = "replicas", .size = replicas}, {.name = "sharing", .size = point.ep * point.etp}};
  plan.groups = {{"replicas", {}, {AxisId{0}}}};
  plan.placement.order = {AxisId{1}, AxisId{0}, AxisId{}};
  Segment segment;
  for (const CollectiveKind kind : {CollectiveKind::AllReduce, CollectiveKind::ReduceScatter, CollectiveKind::AllGather}) {
    double bytes = GridCosts::kLeast;
    for (int i = 0; i < GridCosts::kSizes; ++i, bytes *= GridCosts::kStep)
      segment.instructions.push_back({.what = Collective{.kind = kind,
                                                         .algorithm = of.base.communication.algorithm.value_or(Algorithm::Ring),
                                                         .group = {0},
                                                         .bytes = {static_cast<std::int64_t>(bytes)},
                                                         .dtype = of.types.grad},
                                      .stream = {0}});
  }
  plan.segments = {segment};
  plan.roles.push_back({.name = "experts",
                        .device_kind = of.cluster.nodes.front().shape.gpu,
                        .axes = {AxisId{0}, AxisId{1}},
                        .streams = {{"communication", StreamKind::Communication}},
                        .actions = {{.segment = {0}}}});
  settle_algorithms(plan, of.cluster, of.base);
  cost_plan(plan, of.cluster, framework_preset(of.base.framework), of.profile);
  IsolatedTimes alone(plan, of.cluster);
  const std::vector<Cost>& cost = plan.costs.front().by_segment[0];
  std::size_t next = 0;
  for (auto& ladder : grid.experts)
    for (double& seconds : ladder) seconds = alone.duration({0}, plan.segments.front().instructions[next], cost[next]), ++next;
}

// Measures on a plan without a model, with one segment of collectives of all sizes.
GridCosts probed_grid(const ScreenedModel& of, const Point& point) {
  Plan plan;
  plan.axes = axes_of(point);
  plan.groups = {{"data", {}, {AxisId{0}, AxisId{1}, AxisId{3}}},
                 {"shards", {}, {AxisId{0}, AxisId{1}}},
                 {"replicas", {}, {AxisId{3}}},
                 {"tied", {RoleId{0}, RoleId{point.pp - 1}}, {}},
                 {"tensor", {}, {AxisId{point.tp > 1 ? 2 : 1}}}};
  plan.placement.order = in_order(plan.axes, order_of(of.base, point));
  Segment segment;
  const auto add = [&](CollectiveKind kind, int group) {
    double bytes = GridCosts::kLeast;
    for (int i = 0; i < GridCosts::kSizes; ++i, bytes *= GridCosts::kStep)
      segment.instructions.push_back({.what = Collective{.kind = kind,
                                                         .algorithm = of.base.communication.algorithm.value_or(Algorithm::Ring),
                                                         .group = {group},
                                                         .bytes = {static_cast<std::int64_t>(bytes)},
                                                         .dtype = of.types.grad},
                                      .stream = {0}});
  };
  add(CollectiveKind::AllReduce, 0), add(CollectiveKind::ReduceScatter, 1), add(CollectiveKind::AllGather, 1);
  add(CollectiveKind::AllReduce, 2);
  if (point.pp > 1) {
    add(CollectiveKind::AllReduce, 3);
    for (const std::int64_t bytes : {std::int64_t{1} << 20, std::int64_t{1} << 30})
      segment.instructions.push_back({.what = Exchange{.to = Peer{.role_shift = 1}, .bytes = {bytes}}, .stream = {0}});
  }
  plan.segments = {segment, {.instructions = {}}};
  for (int role = 0; role < point.pp; ++role)
    plan.roles.push_back({.name = std::to_string(role),
                          .device_kind = of.cluster.nodes.front().shape.gpu,
                          .axes = {AxisId{0}, AxisId{1}, AxisId{2}, AxisId{3}},
                          .streams = {{"communication", StreamKind::Communication}},
                          .actions = {{.segment = {role == 0 ? 0 : 1}}}});
  settle_algorithms(plan, of.cluster, of.base);
  segment = plan.segments.front();
  cost_plan(plan, of.cluster, framework_preset(of.base.framework), of.profile);
  IsolatedTimes alone(plan, of.cluster);
  const std::vector<Cost>& cost = plan.costs.front().by_segment[0];
  const auto time = [&](int role, std::size_t i) { return alone.duration({role}, segment.instructions[i], cost[i]); };
  GridCosts grid{.framework = outside_arena(of.base, point)};
  measure_experts(of, point, grid);
  measure_crossings(of.cluster, point, grid);
  std::size_t next = 0;
  for (auto& ladder : grid.collective)
    for (double& seconds : ladder) seconds = time(0, next++);
  for (double& seconds : grid.replicas) seconds = time(0, next++);
  grid.share = cost[GridCosts::kSizes - 3].sm_share;
  Instruction tensor = segment.instructions.front();
  std::get<Collective>(tensor.what).group = GroupId{4};
  const int of_tensor = alone.kind({0}, tensor), of_shards = alone.kind({0}, segment.instructions[GridCosts::kSizes]);
  const Instruction& of_shards_run = segment.instructions[GridCosts::kSizes];
  const Instruction& of_replicas_run = segment.instructions[std::size_t{3} * GridCosts::kSizes];
  const int of_replicas = alone.kind({0}, of_replicas_run);
  if (of_tensor >= 0 && of_shards >= 0) {
    const std::vector<double>& speeds = alone.speeds({of_tensor, of_shards});
    grid.tensor_speed = speeds[0], grid.shards_speed = speeds[1];
  }
  if (of_tensor >= 0 && of_replicas >= 0) {
    const std::vector<double>& speeds = alone.speeds({of_tensor, of_replicas});
    grid.tensor_beside_replicas = speeds[0], grid.replicas_speed = speeds[1];
  }
  if (shares_nics(of.cluster))
    grid.loads = read_loads(alone, point.pp, {tensor, of_shards_run, segment.instructions.front(), of_replicas_run});
  if (point.pp == 1) return grid;
  if (shares_nics(of.cluster)) {
    grid.tensor_contention = contention(alone, tensor, point.pp);
    grid.tensor_probed = contention(alone, tensor, roles_between(point));
    grid.shards_contention = contention(alone, of_shards_run, point.pp);
    grid.replicas_contention =
        contention(alone, point.zero_group > 0 ? of_replicas_run : segment.instructions.front(), point.pp);
  }
  for (double& seconds : grid.tied) seconds = time(0, next++);
  const int hops = std::min(point.pp - 1, 8);
  double small = 0, large = 0;
  for (int role = 0; role < hops; ++role) small += time(role, next) / hops, large += time(role, next + 1) / hops;
  grid.hop_per_byte = (large - small) / ((1 << 30) - (1 << 20));
  grid.hop = small - grid.hop_per_byte * (1 << 20);
  return grid;
}

}  // namespace foreshard
