#include "strategy/estimate_screen.h"

#include <algorithm>
#include <cmath>

#include "core/memory_timeline.h"
#include "strategy/estimate_alone.h"
#include "strategy/estimate_pipeline.h"
#include "strategy/framework_memory.h"
#include "strategy/op_cost.h"
#include "strategy/plan_costs.h"

namespace foreshard {

namespace {

enum Kind { First, Middle, Last, Only };

double read(const GridCosts::Ladder& ladder, double bytes) {
  if (bytes <= 0) return 0;
  const double step = std::log(bytes / GridCosts::kLeast) / std::log(GridCosts::kStep);
  const int low = std::clamp(static_cast<int>(step), 0, GridCosts::kSizes - 2);
  const double from = GridCosts::kLeast * std::pow(GridCosts::kStep, low);
  const auto i = static_cast<std::size_t>(low);
  return std::max(0.0, ladder[i] + (ladder[i + 1] - ladder[i]) * (bytes - from) / (from * (GridCosts::kStep - 1)));
}

// What one probe says about the stages of its roles.
struct Probe {
  std::vector<StageDurations> stages = {};
  std::vector<double> parameters = {}, activations = {}, scratch = {};  // [role]
};

Probe read_probe(const Plan& plan, const Cluster& cluster, Bytes param) {
  Probe probe{.stages = stage_durations(plan, cluster)};
  for (const Role& role : plan.roles) {
    double elements = 0, resident = 0, each = 0, all = 0;
    for (const Buffer& buffer : role.buffers) {
      const auto bytes = static_cast<double>(buffer.bytes.value);
      if (buffer.resident && buffer.category == Category::Parameters) elements += bytes / static_cast<double>(param.value);
      if (buffer.resident) resident += bytes;
      if (buffer.resident || buffer.category != Category::Activations) continue;
      each += bytes;
      all += bytes * static_cast<double>(buffer.offsets.size());
    }
    probe.parameters.push_back(elements);
    probe.activations.push_back(each);
    probe.scratch.push_back(std::max(0.0, static_cast<double>(arena_bytes(role, Space::Device).value) - resident - all));
  }
  return probe;
}

template <class Of>
PerStage per_stage(std::size_t roles, Of of) {  // of(layers per stage, role)
  PerStage result;
  const std::size_t last = roles - 1, middle = roles > 2 ? 1 : 0;
  result.layer = of(2, middle) - of(1, middle);
  result.one = {of(1, 0), of(1, middle), of(1, last), of(1, 0) + (roles > 1 ? of(1, last) - of(1, middle) : 0.0)};
  if (roles == 2) result.one[Only] = of(1, 0) + of(1, last) - result.layer;
  return result;
}

}  // namespace

Strategy strategy_at(const Strategy& base, const Point& point) {
  Strategy s = base;
  s.tp = point.tp, s.cp = point.cp, s.pp = point.pp, s.virtual_stages = point.virtual_stages, s.dp = point.dp;
  s.micro_batch = point.micro_batch;
  s.sequence_parallel = point.sequence_parallel;
  s.overlap.parameters = point.overlap_parameters;
  s.zero = point.zero;
  s.recompute.kind = point.recompute;
  s.schedule = point.schedule;
  return s;
}

double GridCosts::collective_time(CollectiveKind kind, double bytes) const {
  const std::size_t which = kind == CollectiveKind::AllReduce ? 0 : kind == CollectiveKind::ReduceScatter ? 1 : 2;
  return read(collective[which], bytes);
}
double GridCosts::tied_time(double bytes) const { return read(tied, bytes); }

Screen::Screen(const Model& model, const Cluster& cluster, const Strategy& base)
    : model_(model), cluster_(cluster), base_(base), types_(state_types(base)) {
  const auto& transformer = std::get<Transformer>(model.shape);
  const Gpu& gpu = gpu_of(cluster, cluster.nodes.front().shape.gpu);
  layers_ = transformer.layers;
  tied_ = transformer.tied_embeddings;
  tied_elements_ = static_cast<double>(transformer.vocab) * static_cast<double>(transformer.hidden);
  capacity_ = static_cast<double>(gpu.memory.value) * (1 - base.reserve);
  const double each = static_cast<double>(size_of(types_.grad).value + size_of(types_.param).value +
                                          (types_.master ? 2 * size_of(types_.state).value : size_of(types_.param).value)) +
                      (base.optimizer == OptimizerKind::Adam ? 4.0
                       : base.momentum > 0                   ? 2.0
                                                             : 0.0) *
                          static_cast<double>(size_of(types_.state).value);
  const auto adam = [&](std::int64_t elements) {
    return op_time(gpu, {.op = Op::Adam,
                         .phase = Phase::Update,
                         .shapes = {{{elements}, types_.state}},
                         .flops = {12.0 * static_cast<double>(elements)},
                         .traffic = {static_cast<std::int64_t>(each * static_cast<double>(elements))}})
        .value;
  };
  adam_per_element_ = (adam(200'000'000) - adam(100'000'000)) / 1e8;
  launch_ = gpu.launch_overhead.value;
}

std::optional<ShapeCosts> Screen::shape(const Point& point) const {
  Point at = point;
  at.virtual_stages = at.dp = 1;
  at.zero = 0;
  at.schedule = Schedule::OneFOneB;
  at.pp = std::min(3, gpu_count(cluster_) / (point.tp * point.cp));
  std::array<Probe, 2> probes;
  double hop_bytes = 0;
  for (int layers = 1; layers <= 2; ++layers) {
    Model model = model_;
    std::get<Transformer>(model.shape).layers = layers * at.pp;
    Strategy s = strategy_at(base_, at);
    s.layer_split.clear();
    s.zero_group = 0;
    s.global_batch = point.micro_batch * 4;
    const auto answer = lower(model, cluster_, s, {.ignore_memory = true});
    if (std::holds_alternative<Infeasible>(answer)) return {};
    const Plan& plan = std::get<Lowered>(answer).plan;
    probes[static_cast<std::size_t>(layers) - 1] = read_probe(plan, cluster_, size_of(types_.param));
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
  costs.communication = per_stage(roles, [&](int n, std::size_t role) { return probe(n).stages[role].communication; });
  costs.parameters = per_stage(roles, [&](int n, std::size_t role) { return probe(n).parameters[role]; });
  costs.activations = per_stage(roles, [&](int n, std::size_t role) { return probe(n).activations[role]; });
  costs.scratch = per_stage(roles, [&](int n, std::size_t role) { return probe(n).scratch[role]; });
  costs.hop_bytes = hop_bytes;
  return costs;
}

// A plan of the ranks alone, with one segment of collectives of all sizes.
GridCosts Screen::grid(const Point& point) const {
  Plan plan;
  plan.axes = {{"dp", point.dp}, {"cp", point.cp}, {"tp", point.tp}};
  plan.groups = {{"data", {}, {AxisId{0}, AxisId{1}}}, {"tied", {RoleId{0}, RoleId{point.pp - 1}}, {}}};
  plan.placement.order = base_.placement.empty() ? std::vector<std::string>{"tp", "cp", "dp", "role"} : base_.placement;
  std::erase(plan.placement.order, "dp_outer");
  Segment segment;
  const auto add = [&](CollectiveKind kind, int group) {
    double bytes = GridCosts::kLeast;
    for (int i = 0; i < GridCosts::kSizes; ++i, bytes *= GridCosts::kStep)
      segment.instructions.push_back({.what = Collective{.kind = kind,
                                                         .algorithm = base_.algorithm,
                                                         .group = {group},
                                                         .bytes = {static_cast<std::int64_t>(bytes)},
                                                         .dtype = types_.grad},
                                      .stream = {0}});
  };
  for (const auto kind : {CollectiveKind::AllReduce, CollectiveKind::ReduceScatter, CollectiveKind::AllGather}) add(kind, 0);
  if (point.pp > 1) {
    add(CollectiveKind::AllReduce, 1);
    for (const std::int64_t bytes : {std::int64_t{1} << 20, std::int64_t{1} << 30})
      segment.instructions.push_back({.what = Exchange{.to = Peer{.role_shift = 1}, .bytes = {bytes}}, .stream = {0}});
  }
  plan.segments = {segment, {.instructions = {}}};
  for (int role = 0; role < point.pp; ++role)
    plan.roles.push_back({.name = std::to_string(role),
                          .device_kind = cluster_.nodes.front().shape.gpu,
                          .axes = {AxisId{0}, AxisId{1}, AxisId{2}},
                          .streams = {{"communication", StreamKind::Communication}},
                          .actions = {{.segment = {role == 0 ? 0 : 1}}}});
  cost_plan(plan, cluster_);
  AloneTimes alone(plan, cluster_);
  const std::vector<Cost>& cost = plan.costs.front().by_segment[0];
  const auto time = [&](int role, std::size_t i) { return alone.duration({role}, segment.instructions[i], cost[i]); };
  GridCosts grid;
  std::size_t next = 0;
  for (auto& ladder : grid.collective)
    for (double& seconds : ladder) seconds = time(0, next++);
  grid.share = cost[GridCosts::kSizes - 3].sm_share;
  if (point.pp == 1) return grid;
  for (double& seconds : grid.tied) seconds = time(0, next++);
  const int hops = std::min(point.pp - 1, 8);
  double small = 0, large = 0;
  for (int role = 0; role < hops; ++role) small += time(role, next) / hops, large += time(role, next + 1) / hops;
  grid.hop_per_byte = (large - small) / ((1 << 30) - (1 << 20));
  grid.hop = small - grid.hop_per_byte * (1 << 20);
  return grid;
}

// After the last backward of a stage: what is left of the reductions, the update, the all-gather of parameters.
double Screen::tail(const Point& point, const ShapeCosts& shape, const GridCosts& grid, int kind, double layers) const {
  const double replicas = static_cast<double>(point.dp) * point.cp, shards = point.zero > 0 ? replicas : 1;
  const double elements = shape.parameters.of(kind, layers);
  const double grad = static_cast<double>(size_of(types_.grad).value), param = static_cast<double>(size_of(types_.param).value);
  const double default_bucket = std::max(40e6, 1e6 * point.dp);
  const double bucket = point.zero >= 2 ? elements / layers
                        : replicas > 1
                            ? (base_.bucket.value > 0 ? static_cast<double>(base_.bucket.value) / grad : default_bucket)
                            : elements;
  const double units = std::max(1.0, std::floor(elements / bucket)), unit = elements / units;
  const double update = adam_per_element_ * elements / shards + units * launch_, one_update = update / units;
  double reduced = 0, update_from = 0;  // after the last backward
  if (replicas > 1) {
    const auto how = point.zero == 0 ? CollectiveKind::AllReduce : CollectiveKind::ReduceScatter;
    const double one = grid.collective_time(how, unit * grad), all = one * units;
    const double backward = shape.backward.of(kind, layers);
    if (point.zero < 2 && !base_.overlap.gradients)
      reduced = all, update_from = one;
    else
      reduced = std::max(one, all - backward * (1 - 1 / units)) + (point.zero < 2 ? grid.share * std::min(all, backward) : 0.0);
  }
  double end = std::max(update_from + update, reduced + one_update);
  if ((point.zero == 1 || point.zero == 2) && replicas > 1) {
    const double one = grid.collective_time(CollectiveKind::AllGather, unit * param), all = one * units;
    if (point.overlap_parameters)
      end += std::max(one, all - shape.forward.of(kind, layers) * (1 - 1 / units));  // at the begin of the next run
    else
      end = std::max(end + one, one_update + all);
  }
  if (tied_ && (kind == First || kind == Last) && point.pp > 1)
    end = std::max(end, grid.tied_time(tied_elements_ / point.tp * grad) + one_update);
  return end;
}

// The first rank holds most activations, the others may hold more parameters: the largest of the kinds.
double Screen::memory(const Point& point, const ShapeCosts& shape, double microbatches) const {
  const double layers = static_cast<double>(layers_) / (point.pp * point.virtual_stages), p = point.pp,
               v = point.virtual_stages;
  const double replicas = static_cast<double>(point.dp) * point.cp, shards = point.zero > 0 ? replicas : 1;
  const double grad = static_cast<double>(size_of(types_.grad).value), param = static_cast<double>(size_of(types_.param).value);
  const double states =
      static_cast<double>(size_of(types_.state).value) * ((types_.master ? 1 : 0) + (base_.optimizer == OptimizerKind::Adam ? 2
                                                                                     : base_.momentum > 0                   ? 1
                                                                                                          : 0));
  const double each = param / (point.zero >= 3 ? shards : 1) + grad / (point.zero >= 2 ? shards : 1) + states / shards;
  double most = 0;
  for (const int kind : {First, Last}) {
    const int at = p == 1 ? Only : kind;
    const double rank = kind == First || p == 1 ? 0 : p - 1;
    double flight = std::min(microbatches, p - rank);
    if (point.schedule == Schedule::GPipe) flight = microbatches;
    double elements = shape.parameters.of(at, layers), activations = shape.activations.of(at, layers) * flight;
    if (v > 1) {
      const double chunks = std::min(microbatches * v, 2 * (p - 1 - rank) + (v - 1) * p + 1);
      elements += (v - 1) * shape.parameters.of(Middle, layers);
      activations = shape.activations.of(at, layers) + (chunks - 1) * shape.activations.of(Middle, layers);
    }
    double sum = elements * each + activations + shape.scratch.of(at, layers);
    const double rings = point.zero >= 2 ? elements / (layers * v) : 0;
    if (point.zero >= 2) sum += rings * grad * (base_.overlap.gradients ? 2 : 1);
    if (point.zero >= 3) sum += rings * param * (point.overlap_parameters ? 2 : 1);
    most = std::max(most, sum);
  }
  Strategy s;
  s.tp = point.tp, s.cp = point.cp, s.pp = point.pp, s.dp = point.dp;
  s.framework_memory = base_.framework_memory;
  return most + static_cast<double>(framework_memory(s).value);
}

// ZeRO 2 and 3 communicate in every micro-batch: layer by layer, over the same links, beside the computes or between them.
void Screen::shard(const Point& point, const ShapeCosts& shape, const GridCosts& grid, double layers,
                   PipelineTimes& times) const {
  const auto beside = [&](double& time, double talk) { time = std::max(time + grid.share * talk, talk); };
  for (int kind = First; kind <= Only; ++kind) {
    const auto i = static_cast<std::size_t>(kind);
    const double unit = shape.parameters.of(kind, layers) / layers;
    const double scatter =
        layers * grid.collective_time(CollectiveKind::ReduceScatter, unit * static_cast<double>(size_of(types_.grad).value));
    double gather = 0;
    if (point.zero == 3)
      gather =
          layers * grid.collective_time(CollectiveKind::AllGather, unit * static_cast<double>(size_of(types_.param).value));
    if (point.zero == 3 && !point.overlap_parameters) {
      times.forward[i] += gather;
      times.backward[i] += gather + scatter;
    } else if (base_.overlap.gradients) {
      beside(times.forward[i], gather);
      beside(times.backward[i], gather + scatter);
    } else {
      beside(times.forward[i], gather);
      times.backward[i] += scatter + grid.share * gather;
    }
  }
}

Screened Screen::at(const Point& point, const ShapeCosts& shape, const GridCosts& grid) const {
  const double layers = static_cast<double>(layers_) / (point.pp * point.virtual_stages);
  const double m = static_cast<double>(base_.global_batch) / static_cast<double>(point.micro_batch * point.dp);
  PipelineTimes times{.ranks = point.pp, .chunks = point.virtual_stages, .microbatches = m};
  times.hop = point.pp > 1 ? grid.hop + grid.hop_per_byte * shape.hop_bytes : 0;
  for (int kind = First; kind <= Only; ++kind) {
    const auto i = static_cast<std::size_t>(kind);
    times.forward[i] = shape.forward.of(kind, layers), times.backward[i] = shape.backward.of(kind, layers);
  }
  if (point.zero >= 2 && point.dp * point.cp > 1) shard(point, shape, grid, layers, times);
  Screened screened{.bound = pipeline_bound(times), .peak = memory(point, shape, m)};
  const double end = pipeline_time(point.schedule, times);
  if (point.pp == 1) {
    screened.time = end + tail(point, shape, grid, Only, layers);
    return screened;
  }
  // The first rank is the last to end its backwards; rank r ends when r backwards and transfers are still to come.
  const double second = times.backward[First] + times.hop;
  const double rest = second + (point.pp - 2) * (times.backward[Middle] + times.hop);
  screened.time = std::max(end + tail(point, shape, grid, First, layers), end - rest + tail(point, shape, grid, Last, layers));
  if (point.pp > 2) screened.time = std::max(screened.time, end - second + tail(point, shape, grid, Middle, layers));
  return screened;
}

}  // namespace foreshard
