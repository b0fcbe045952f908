#include "strategy/lower/lower.h"

#include <algorithm>

#include "core/json/json.h"
#include "core/network/network.h"
#include "core/plan/ranks.h"
#include "core/result/memory_timeline.h"
#include "strategy/cost/framework_memory.h"
#include "strategy/cost/framework_preset.h"
#include "strategy/cost/plan_costs.h"
#include "strategy/lower/layout.h"
#include "strategy/lower/loss_scale.h"
#include "strategy/lower/lowering.h"
#include "strategy/lower/memory_planner.h"
#include "strategy/lower/redone_layers.h"
#include "strategy/lower/role_program.h"
#include "strategy/schedule/receive_slots.h"

namespace foreshard {

GroupId add_group(Plan& plan, const std::string& name, std::vector<AxisId> over, std::vector<RoleId> roles) {
  if (over.empty() && roles.empty()) return {};
  plan.groups.push_back({name, std::move(roles), std::move(over)});
  return {static_cast<std::int32_t>(plan.groups.size()) - 1};
}

namespace {

bool ties_embeddings_across_roles(const Lowering& lowering) {
  const auto* transformer = std::get_if<Transformer>(&lowering.model.shape);
  return transformer && transformer->tied_embeddings && lowering.strategy.pp > 1;
}

void add_axes_and_groups(Lowering& lowering, Layout layout) {
  using enum DenseKind;
  const Strategy& s = lowering.strategy;
  Plan& plan = lowering.plan;
  const int inner = s.zero > 0 ? s.zero_group : s.dp;
  plan.axes = std::move(layout.axes);
  plan.placement.order = std::move(layout.fastest_first);
  for (std::size_t axis = 0; axis < plan.axes.size(); ++axis) lowering.axes.push_back({static_cast<std::int32_t>(axis)});
  lowering.replicas = s.dp * s.cp;
  lowering.zero = inner * s.cp > 1 ? s.zero : 0;
  lowering.shards = lowering.zero > 0 ? inner * s.cp : 1;
  lowering.data_group = add_group(plan, "data", lowering.over({OuterData, Data, Context}));
  lowering.shard_group = lowering.zero > 0 ? add_group(plan, "shards", lowering.over({Data, Context})) : GroupId{};
  lowering.replica_group = lowering.zero > 0 ? add_group(plan, "replicas", lowering.over({OuterData})) : GroupId{};
  lowering.tp_group = add_group(plan, "tensor", lowering.over({Tensor}));
  lowering.tp_gradient_group = s.sequence_parallel ? add_group(plan, "tensor gradients", lowering.over({Tensor})) : GroupId{};
  lowering.cp_group = add_group(plan, "context", lowering.over({Context}));
  if (ties_embeddings_across_roles(lowering)) {
    const RoleId last{rank_of_stage(*s.schedule, lowering.stages() - 1, s.pp)};
    if (last.value != 0) lowering.tied_group = add_group(plan, "tied embeddings", {}, {RoleId{0}, last});
  }
}

// Where the plan came from, and what its result is judged by: report reads "workload".
std::string origin(const Lowering& lowering, const std::vector<std::string>& settings) {
  const Strategy& s = lowering.strategy;
  const bool tokens = std::holds_alternative<Transformer>(lowering.model.shape);
  JsonWriter json(0);
  json.begin_object();
  json.field("model", lowering.model.name).field("cluster", lowering.cluster.name);
  json.key("workload").begin_object();
  json.field("tokens_per_sample", tokens ? s.seq : std::int64_t{0});
  const std::int64_t rows = s.vocab_multiple * widest_tp(s);
  json.field("model_flops_per_sample", model_flops_per_sample(lowering.model, s.seq, rows).value);
  json.field("parameters", parameter_count(lowering.model, rows));
  json.end_object();
  json.key("strategy").raw(to_json(s));
  if (!settings.empty()) {  // of fields of the model's and the cluster's file
    json.key("settings").begin_array();
    for (const std::string& setting : settings) json.value(setting);
    json.end_array();
  }
  json.end_object();
  return json.text();
}

}  // namespace

Sharding sharding_of(const Strategy& s, const StateTypes& types) {
  return {.micro_batch = s.micro_batch,
          .seq = s.seq,
          .tp = s.tp,
          .cp = s.cp,
          .sequence_parallel = s.sequence_parallel,
          .context_ring = s.context == ContextKind::Ring,
          .flash_attention = s.attention == AttentionKernel::Flash,
          .dropout = *s.dropout,
          .compute = types.compute,
          .param = types.param,
          .vocab_multiple = s.vocab_multiple};
}

// Replicas have equal gradients after their reduction; ZeRO leaves each rank a shard.
static void add_norm_group(Lowering& lowering) {
  if (!lowering.measures()) return;
  std::vector<RoleId> roles;
  for (int role = 0; role < lowering.strategy.pp && lowering.strategy.pp > 1; ++role) roles.push_back({role});
  const bool sharded = lowering.zero > 0;
  using enum DenseKind;
  std::vector<AxisId> over = sharded ? lowering.over({Data, Context, Tensor}) : lowering.over({Tensor});
  lowering.norm_group = add_group(lowering.plan, "norm", std::move(over), std::move(roles));
}

// Nodes may differ; the ranks of a role run one program at one speed.
static std::optional<Infeasible> find_devices(Plan& plan, const Cluster& cluster) {
  const Network network(cluster);
  const Ranks ranks(plan);
  for (std::int32_t r = 0; r < static_cast<std::int32_t>(plan.roles.size()); ++r) {
    std::string& kind = plan.roles[RoleId{r}.index()].device_kind;
    kind = network.gpu(ranks.device(ranks.first({r}))).name;
    for (int i = 1; i < ranks.count({r}); ++i)
      if (const std::string& other = network.gpu(ranks.device({ranks.first({r}).value + i})).name; other != kind)
        return Infeasible{.reason = "pipeline stage " + std::to_string(r) + " would stand on " + kind + " and on " + other +
                                    ": the ranks of a stage need equal GPUs",
                          .would_help = {"--pp so that every stage has nodes of one kind", "--placement with role last"}};
  }
  return {};
}

std::variant<Lowered, Infeasible> finish_plan(Lowering& lowering, const LowerOptions& options) {
  Plan& plan = lowering.plan;
  const Cluster& cluster = lowering.cluster;
  const Strategy& s = lowering.strategy;
  if (cluster.nodes.size() > 1)
    if (auto refused = find_devices(plan, cluster)) return *refused;
  plan_memory(plan, {.share_kept = !lowering.runs.empty()});
  plan.framework = framework_memory(s);
  const Bytes capacity = gpu_of(cluster, cluster.nodes.front().shape.gpu).memory;
  plan.reserve = {static_cast<std::int64_t>(s.reserve * static_cast<double>(capacity.value))};
  plan.origin = origin(lowering, options.settings);
  cost_plan(plan, cluster, framework_preset(s.framework), options.profile);
  plan = lowering.scales_dynamically() ? with_dynamic_loss_scale(std::move(plan), {.state = lowering.loss_scale})
                                       : with_loss_scale(std::move(plan), s.loss_scale);
  if (!options.ignore_memory)
    if (auto refused = does_not_fit(plan, cluster)) return *refused;
  return Lowered{.plan = std::move(plan), .strategy = s};
}

std::variant<OpGraph, Infeasible> graph_of(const Model& model, const Strategy& strategy) {
  try {
    return build_op_graph(model, sharding_of(strategy, state_types(strategy)));
  } catch (const Error& refused) {  // shapes that cannot be cut so: an answer, not wrong input
    return Infeasible{.reason = refused.what()};
  }
}

bool leaves_open(const Strategy& strategy) {
  const Recompute& recompute = strategy.recompute;
  return strategy.layer_split == "auto" || recompute == Recompute{.kind = RecomputeKind::Each} || recompute.layers < 0 ||
         recompute.kind >= RecomputeKind::Rotor;
}

std::variant<Lowering, Infeasible> begin_lowering(const Model& model, const Cluster& cluster, Strategy strategy) {
  Lowering lowering{.model = model, .cluster = cluster, .strategy = std::move(strategy)};
  const Strategy& s = lowering.strategy;
  lowering.types = state_types(s);
  auto graph = graph_of(model, s);
  if (auto* refused = std::get_if<Infeasible>(&graph)) return *refused;
  lowering.graph = std::get<OpGraph>(std::move(graph));
  auto layout = stage_layout(lowering.graph, s.pp * s.virtual_stages, s.layer_split);
  if (auto* refused = std::get_if<Infeasible>(&layout)) return *refused;
  lowering.layout = std::get<StageLayout>(std::move(layout));
  if (auto refused = refuse_layers(s.recompute, lowering.graph, lowering.layout, s.pp)) return *refused;

  Plan& plan = lowering.plan;
  plan.microbatches = static_cast<int>(s.global_batch / (s.micro_batch * s.dp));
  plan.stages = lowering.stages();
  plan.samples = s.global_batch;
  lowering.lists =
      schedule_entry(*s.schedule).lists({.p = s.pp, .m = plan.microbatches, .v = s.virtual_stages, .g = s.microbatch_group});
  ReceiveSlots slots = receive_slots(lowering.lists);
  lowering.input_slots = std::move(slots.input);
  lowering.gradient_slots = std::move(slots.gradient);
  add_axes_and_groups(lowering, std::get<Layout>(rank_layout(s)));  // resolve has refused what has none
  add_norm_group(lowering);
  plan.costs.push_back({.device_kind = cluster.nodes.front().shape.gpu});
  return lowering;
}

std::variant<Lowered, Infeasible> lower(const Model& model, const Cluster& cluster, const Strategy& strategy,
                                        const LowerOptions& options, const std::vector<StageRuns>& runs) {
  Strategy measured = strategy;
  if (!measured.framework_memory) measured.framework_memory = measured_outside(options.profile, cluster);
  auto resolved = resolve(model, cluster, measured);
  if (auto* refused = std::get_if<Infeasible>(&resolved)) return *refused;
  Strategy& s = std::get<Strategy>(resolved);
  if (!s.stages.empty()) return lower_stages(model, cluster, s, options);
  FS_ASSERT(!leaves_open(s) || !runs.empty());
  auto begun = begin_lowering(model, cluster, std::move(s));
  if (auto* refused = std::get_if<Infeasible>(&begun)) return *refused;
  Lowering& lowering = std::get<Lowering>(begun);
  const Strategy& own = lowering.strategy;
  lowering.redone = layers_redone(own.recompute, lowering.graph, lowering.layout, *own.schedule, own.pp);
  lowering.runs = runs;
  SharedPrograms shared;
  for (int role = 0; role < own.pp; ++role) add_role(lowering, role, shared);
  return finish_plan(lowering, options);
}

}  // namespace foreshard
