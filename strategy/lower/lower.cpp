#include "strategy/lower/lower.h"

#include <algorithm>

#include "core/json/json.h"
#include "core/network/network.h"
#include "core/plan/plan_indices.h"
#include "core/plan/ranks.h"
#include "core/result/memory_timeline.h"
#include "strategy/cost/framework_memory.h"
#include "strategy/cost/framework_preset.h"
#include "strategy/cost/plan_costs.h"
#include "strategy/cost/settle_algorithms.h"
#include "strategy/lower/begin_lowering.h"
#include "strategy/lower/chunk_budget.h"
#include "strategy/lower/loss_scale.h"
#include "strategy/lower/memory_planner.h"
#include "strategy/lower/role_program.h"
#include "strategy/resolve/measured_memory.h"
#include "strategy/schedule/receive_slots.h"
#include "strategy/state/correction_bias.h"

namespace foreshard {

namespace {

constexpr std::int64_t kPackingNodes = 50'000;  // of a search for offsets: under a second

void add_axes_and_groups(Lowering& lowering) {
  using enum LayoutGroup::Roles;
  const StrategyTables& tables = lowering.tables;
  lowering.plan.axes = tables.layout.axes;
  lowering.plan.placement.order = tables.layout.fastest_first;
  for (std::size_t axis = 0; axis < lowering.plan.axes.size(); ++axis)
    lowering.axes.push_back({static_cast<std::int32_t>(axis)});
  const int ranks = tables.schedule.ranks();
  for (const LayoutGroup& group : tables.layout.groups) {
    if (tables.schedule.routes > 1 && group.roles == Own) continue;  // of the ranks of a stage: begin_role
    std::vector<RoleId> roles;
    if (group.roles == Tied) roles = {RoleId{0}, RoleId{tables.schedule.rank_of(lowering.stages() - 1)}};
    for (int role = 0; role < ranks && ranks > 1 && group.roles == All; ++role) roles.push_back({role});
    lowering.add_group(group, std::move(roles));
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
  json.field("tokens_per_sample", tokens ? s.batch.seq : std::int64_t{0});
  const std::int64_t rows = s.vocab_multiple * widest_tp(s);
  json.field("model_flops_per_sample",
             model_flops_per_sample(lowering.model, s.batch.seq, rows, s.optimizer.lora, s.batch.packed).value);
  json.field("masked_flops_per_sample",
             masked_flops_per_sample(lowering.model, s.batch.seq, rows, s.optimizer.lora, s.batch.packed).value);
  json.field("parameters", parameter_count(lowering.model, rows));
  if (s.optimizer.lora.any()) json.field("trained_parameters", adapter_elements(lowering.model, s.optimizer.lora));
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

// The budget of chunks counts on places of their own.
bool packs_by_order(const StrategyTables& tables) {
  const auto has_chunks = [](const StateRow& row) { return std::holds_alternative<ChunkRule>(row.parameters.stays.rule); };
  return std::ranges::none_of(tables.state, has_chunks);
}

static bool is_larger(const Shape& shape, std::int64_t most) {
  for (const std::int64_t n : shape.dims) {
    if (n > most) return true;
    most /= std::max<std::int64_t>(n, 1);
  }
  return false;
}

// Operators of a model so wide that no plan can say their sizes (core/plan/plan_indices.h), whatever the memory.
static std::optional<Infeasible> larger_than_plans(const Plan& plan) {
  for (const Segment& segment : plan.segments)
    for (const Instruction& run : segment.instructions) {
      const auto* compute = std::get_if<Compute>(&run.what);
      if (!compute) continue;
      const bool larger = compute->traffic.value > kMostBytes ||
                          std::ranges::any_of(compute->shapes, [](const Shape& shape) { return is_larger(shape, kMostBytes); });
      if (larger)
        return Infeasible{.reason = "\"" + run.name +
                                    "\" would work on more than 2^50 elements or bytes at once, the most that plans have"};
    }
  return {};
}

std::variant<Lowered, Infeasible> finish_plan(Lowering& lowering, const LowerOptions& options) {
  Plan& plan = lowering.plan;
  const Cluster& cluster = lowering.cluster;
  const Strategy& s = lowering.strategy;
  if (cluster.nodes.size() > 1)
    if (auto refused = find_devices(plan, cluster)) return *refused;
  if (const auto* transformer = std::get_if<Transformer>(&lowering.model.shape); transformer && plan.updates == 1)
    if (const Experts& e = transformer->block.experts; e.correction_bias && e.bias_speed > 0)
      add_correction_biases(plan, e.bias_speed);
  if (auto refused = larger_than_plans(plan)) return *refused;
  settle_algorithms(plan, cluster, s);
  plan.framework = framework_memory(s) + attention_workspace(plan, cluster, s);
  const Bytes capacity = gpu_of(cluster, cluster.nodes.front().shape.gpu).memory;
  plan.reserve = {static_cast<std::int64_t>(s.device_memory.reserve * static_cast<double>(capacity.value))};
  if (!options.ignore_memory && !options.explain && never_fits(plan, cluster))
    return Infeasible{.reason = "more is alive at one time than a device has"};
  const bool by_order = packs_by_order(lowering.tables);
  MemoryPlanOptions memory{.share_kept = lowering.tables.activations.shares_kept(),
                           .by_order = by_order && options.pack_by_order,
                           .own_slots = options.pack_by_order,
                           .search_nodes = s.device_memory.exact_packing ? kPackingNodes : 0};
  plan_memory(plan, memory);
  if (by_order && !memory.by_order && !options.ignore_memory && does_not_fit(plan, cluster)) {
    memory.by_order = true;
    plan_memory(plan, memory);
  }
  plan.origin = origin(lowering, options.settings);
  cost_plan(plan, cluster, framework_preset(s.framework), options.profile);
  plan = lowering.tables.update.scales_dynamically ? with_dynamic_loss_scale(std::move(plan), {.state = lowering.loss_scale})
                                                   : with_loss_scale(std::move(plan), s.optimizer.loss_scale);
  if (!options.ignore_memory)
    if (auto refused = does_not_fit(plan, cluster)) return *refused;
  return Lowered{.plan = std::move(plan), .strategy = s};
}

// Of what a part of the operators, and of the samples of a micro-batch, looks like.
static std::optional<Infeasible> add_graphs_of_parts(Lowering& lowering) {
  const CommunicationPolicy& communication = lowering.tables.communication;
  std::vector<int> all = {communication.sample_groups()};
  for (const PartsRow& row : communication.parts) all.insert(all.end(), row.counts.begin(), row.counts.end());
  for (const int parts : all) {
    if (parts == 1 || lowering.graph_of_parts.contains(parts)) continue;
    Strategy smaller = lowering.strategy;
    smaller.batch.micro /= parts;
    auto graph = graph_of(lowering.model, smaller);
    if (auto* refused = std::get_if<Infeasible>(&graph)) return *refused;
    lowering.graph_of_parts.emplace(parts, std::get<OpGraph>(std::move(graph)));
  }
  return {};
}

std::variant<Lowering, Infeasible> begin_lowering(const Model& model, const Cluster& cluster, Strategy strategy,
                                                  const TunedRows& tuned) {
  Lowering lowering{.model = model, .cluster = cluster, .strategy = std::move(strategy)};
  const Strategy& s = lowering.strategy;
  auto graph = graph_of(model, s);
  if (auto* refused = std::get_if<Infeasible>(&graph)) return *refused;
  lowering.graph = std::get<OpGraph>(std::move(graph));
  auto tables = tables_of(model, s, lowering.graph, tuned);
  if (auto* refused = std::get_if<Infeasible>(&tables)) return *refused;
  lowering.tables = std::get<StrategyTables>(std::move(tables));
  if (auto refused = add_graphs_of_parts(lowering)) return *refused;

  Plan& plan = lowering.plan;
  plan.microbatches = static_cast<int>(s.batch.global / (s.batch.micro * s.dp));
  plan.stages = lowering.stages();
  plan.updates = lowering.tables.schedule.updates;
  plan.samples = s.batch.global;
  ReceiveSlots slots = receive_slots(lowering.tables.schedule.order, lowering.tables.schedule.routes);
  lowering.input_slots = std::move(slots.input);
  lowering.gradient_slots = std::move(slots.gradient);
  add_axes_and_groups(lowering);
  plan.costs.push_back({.device_kind = cluster.nodes.front().shape.gpu});
  return lowering;
}

std::variant<Lowered, Infeasible> lower(const Model& model, const Cluster& cluster, const Strategy& strategy,
                                        const LowerOptions& options, const TunedRows& tuned) {
  auto resolved = resolve(model, cluster, strategy);
  if (auto* refused = std::get_if<Infeasible>(&resolved)) return *refused;
  Strategy s = with_measured_memory(model, cluster, std::get<Strategy>(std::move(resolved)), options.profile);
  if (!s.stages.empty()) return lower_stages(model, cluster, s, options);
  FS_ASSERT(!s.communication.asynchronous);  // lower_asynchronous
  FS_ASSERT(!leaves_open(s) || !tuned.runs.empty() || tuned.moves);
  auto begun = begin_lowering(model, cluster, std::move(s), tuned);
  if (auto* refused = std::get_if<Infeasible>(&begun)) return *refused;
  Lowering& lowering = std::get<Lowering>(begun);
  if (auto refused = set_chunk_budget(lowering, options.ignore_memory)) return *refused;
  SharedPrograms shared;
  for (int role = 0; role < lowering.tables.schedule.ranks(); ++role) add_role(lowering, role, shared);
  return finish_plan(lowering, options);
}

}  // namespace foreshard
