#include "strategy/tune/hybrid_model.h"

#include <algorithm>

#include "core/base/divisors.h"
#include "core/base/error.h"
#include "core/graph/op_graph.h"
#include "strategy/cost/framework_memory.h"
#include "strategy/cost/framework_preset.h"
#include "strategy/cost/plan_costs.h"
#include "strategy/cost/settle_algorithms.h"
#include "strategy/estimate/isolated_times.h"
#include "strategy/tune/partition_model.h"
#include "strategy/tune/tune.h"

namespace foreshard {

namespace {

constexpr Bytes kProbeBytes{std::int64_t{1} << 28};
constexpr int kLowered = 12;  // equal-degree plans that are lowered and fit

// Isolated seconds of one instruction in a plan of ranks without a model: `replicas` of tensor groups, in one role or in two.
double seconds_of(const Cluster& cluster, const Strategy& strategy, int tensor, int replicas, int roles, Instruction run) {
  Plan plan;
  plan.axes = {{.name = axis_name(DenseKind::Data), .dense = DenseKind::Data, .size = replicas},
               {.name = axis_name(DenseKind::Tensor), .dense = DenseKind::Tensor, .size = tensor}};
  plan.groups = {{"data", {}, {AxisId{0}}}};
  plan.placement.order = in_order(plan.axes, default_rank_order());
  run.stream = {0};
  plan.segments = {{.instructions = {std::move(run)}}, {}};
  for (int role = 0; role < roles; ++role)
    plan.roles.push_back({.name = std::to_string(role),
                          .device_kind = cluster.nodes.front().shape.gpu,
                          .axes = {AxisId{0}, AxisId{1}},
                          .streams = {{"communication", StreamKind::Communication}},
                          .actions = {{.segment = {role == 0 ? 0 : 1}}}});
  settle_algorithms(plan, cluster, strategy);
  cost_plan(plan, cluster, framework_preset(strategy.framework));
  IsolatedTimes alone(plan, cluster);
  return alone.duration({0}, plan.segments.front().instructions.front(), plan.costs.front().by_segment.front().front());
}

// Bytes per second of a ring over d = `replicas`: an all-reduce of n bytes sends 2 (d-1)/d n bytes.
double sum_bandwidth(const Cluster& cluster, const Strategy& strategy, int tensor, int replicas) {
  if (replicas < 2) return TensorDegree{}.near;
  const Collective sum{.kind = CollectiveKind::AllReduce,
                       .algorithm = strategy.communication.algorithm.value_or(Algorithm::Ring),
                       .group = {0},
                       .bytes = kProbeBytes};
  const double seconds = seconds_of(cluster, strategy, tensor, replicas, 1, {.what = sum});
  return 2.0 * (replicas - 1) / replicas * static_cast<double>(kProbeBytes.value) / seconds;
}

// `strategy` without replicas, pipeline and ZeRO, at this tensor degree.
Strategy plain(const Strategy& strategy, int tensor) {
  Strategy s = strategy;
  s.tp = tensor, s.dp = s.pp = s.cp = s.virtual_stages = 1;
  s.zero.stage = s.zero.group = 0;
  s.pipeline.schedule = Schedule::OneFOneB;
  s.pipeline.layer_split.clear(), s.placement.clear();
  return s;
}

}  // namespace

int split_layers(const Model& model) {
  if (const auto* transformer = std::get_if<Transformer>(&model.shape)) return transformer->layers;
  const OpGraph graph = build_op_graph(model, {});
  return static_cast<int>(
      std::count_if(graph.layers.begin(), graph.layers.end(), [](const auto& layer) { return layer.counted; }));
}

HybridJob hybrid_job(const Model& model, const Cluster& cluster, const Strategy& strategy, int max_tp,
                     const MachineProfile* profile) {
  if (cluster.nodes.size() != 1) throw Error("cluster", "nodes", "several kinds", "equal nodes for a partition");
  const int node = cluster.nodes.front().shape.gpus, devices = gpu_count(cluster), layers = split_layers(model);
  HybridJob job{.devices = devices};
  job.microbatches = static_cast<double>(strategy.batch.global) / static_cast<double>(strategy.batch.micro);
  job.capacity = static_cast<double>(gpu_of(cluster, cluster.nodes.front().shape.gpu).memory.value) *
                     (1 - strategy.device_memory.reserve) -
                 static_cast<double>(framework_memory(strategy).value);
  for (const std::int64_t divisor : divisors(std::min(node, devices))) {
    const auto tensor = static_cast<int>(divisor);
    if (max_tp > 0 && tensor > max_tp) break;
    TensorDegree degree{.degree = tensor, .layers = layer_chain(model, cluster, plain(strategy, tensor), layers, profile)};
    if (degree.layers.empty()) continue;
    degree.inside = node / tensor;
    degree.near = sum_bandwidth(cluster, strategy, tensor, degree.inside);
    if (devices > node) degree.far = sum_bandwidth(cluster, strategy, tensor, 2 * degree.inside);
    job.degrees.push_back(std::move(degree));
  }
  const int ports = devices > node ? node : 1;
  if (devices > 1) {
    const Instruction hop{.what = Exchange{.to = Peer{.role_shift = 1}, .bytes = kProbeBytes}};
    job.link = static_cast<double>(kProbeBytes.value) / seconds_of(cluster, strategy, 1, ports, 2, hop);
  }
  return job;
}

namespace {

struct Degrees {
  int tensor = 1, replicas = 1, stages = 1;
  double cost = 0;  // of the slowest machine (stage or link), with the split that is best for it
};

std::vector<Degrees> equal_degrees(const Strategy& strategy, HybridJob job) {
  std::vector<Degrees> all;
  const int layers = job.degrees.empty() ? 0 : static_cast<int>(job.degrees.front().layers.size());
  job.capacity = HybridJob{}.capacity;  // `lower` decides what fits
  for (const TensorDegree& degree : job.degrees) {
    if (job.devices % degree.degree != 0) continue;
    for (const std::int64_t divisor : divisors(job.devices / degree.degree)) {
      const auto stages = static_cast<int>(divisor);
      const int replicas = job.devices / degree.degree / stages;
      if (stages > layers || strategy.batch.global % (strategy.batch.micro * replicas) != 0) continue;
      const HybridPartition found = partition_uniform(job, degree.degree, replicas, stages);
      if (!found.stages.empty()) all.push_back({degree.degree, replicas, stages, found.cost});
    }
  }
  std::stable_sort(all.begin(), all.end(), [](const Degrees& a, const Degrees& b) { return a.cost < b.cost; });
  return all;
}

// With the split that `--layer-split auto` finds.
std::optional<UniformPlan> lowered_plan(const Model& model, const Cluster& cluster, const Strategy& strategy,
                                        const HybridJob& job, const Degrees& degrees, const MachineProfile* profile) {
  Strategy s = plain(strategy, degrees.tensor);
  s.pp = degrees.stages, s.dp = degrees.replicas, s.pipeline.layer_split = degrees.stages > 1 ? "auto" : "";
  const auto answer = tuned_plan(model, cluster, s, {.pack_by_order = false, .check = false, .profile = profile});
  if (std::holds_alternative<Infeasible>(answer)) return {};
  const Lowered& lowered = std::get<Lowered>(answer);
  UniformPlan plan{.strategy = lowered.strategy, .estimate = refine(lowered, cluster)};
  const auto layers = static_cast<int>(job.degrees.front().layers.size());
  const std::string split =
      plan.strategy.pipeline.layer_split.empty() ? std::to_string(layers) : plan.strategy.pipeline.layer_split;
  int first = 0;
  for (const int count : parse_layer_split(split, "layer_split")) {
    plan.partition.stages.push_back({first, first + count, degrees.replicas, degrees.tensor});
    plan.partition.cost = std::max(plan.partition.cost, hybrid_cost(job, plan.partition.stages.back()));
    first += count;
  }
  return plan;
}

}  // namespace

std::optional<UniformPlan> best_uniform_plan(const Model& model, const Cluster& cluster, const Strategy& strategy,
                                             const HybridJob& job, const MachineProfile* profile) {
  std::optional<UniformPlan> best;
  int fitting = 0;
  for (const Degrees& degrees : equal_degrees(strategy, job)) {
    if (fitting == kLowered) break;
    std::optional<UniformPlan> plan = lowered_plan(model, cluster, strategy, job, degrees, profile);
    fitting += plan.has_value();
    if (plan && (!best || plan->estimate.time < best->estimate.time)) best = std::move(plan);
  }
  return best;
}

}  // namespace foreshard
