#include "strategy/tune/partition_model.h"

#include "strategy/estimate/estimate.h"
#include "strategy/lower/lower.h"
#include "strategy/resolve/resolve.h"

namespace foreshard {

namespace {

// Bytes that a forward sends to the next stage.
double sent(const Plan& plan, const Role& role) {
  for (const Action& action : role.actions)
    if (!action.does.empty() && action.does.front().work == Work::F)
      for (const Instruction& run : plan.segments[action.segment.index()].instructions)
        if (const auto* what = std::get_if<Exchange>(&run.what); what && what->to && what->to->role_shift != 0)
          return static_cast<double>(what->bytes.value);
  return 0;
}

void forget_transfers(Plan& plan) {
  for (CostTable& table : plan.costs)
    for (std::size_t s = 0; s < plan.segments.size(); ++s)
      for (std::size_t i = 0; i < plan.segments[s].instructions.size(); ++i)
        if (const auto* what = std::get_if<Exchange>(&plan.segments[s].instructions[i].what);
            what && (what->to ? what->to : what->from)->role_shift != 0)
          table.by_segment[s][i] = {.wire_factor = 0};
}

// Adds a NIC to a node without one, so that a cluster may have several such nodes. Its speed does not matter: transfers do not count here.
void give_nic(NodeShape& shape) {
  shape.nics = 1, shape.nic_bandwidth = {1e9};
  shape.links.push_back({.to = static_cast<int>(shape.parts.size()), .bandwidth = shape.nic_bandwidth});
  shape.parts.push_back({.kind = PartKind::Nic, .name = "nic0", .rail = 0});
}

}  // namespace

std::vector<ChainLayer> layer_chain(const Model& model, const Cluster& cluster, const Strategy& strategy, int layers,
                                    const MachineProfile* profile) {
  Strategy single = without_open_choices(strategy);
  single.pp = layers, single.virtual_stages = 1, single.pipeline.schedule = Schedule::OneFOneB;
  single.pipeline.layer_split.clear();
  if (!strategy.recompute.per_stage.empty()) single.recompute = {};  // does not apply to a stage of one layer
  single.dp = 1, single.zero.stage = 0, single.zero.group = 0;
  single.batch.global = single.batch.micro * 2;
  const int gpus = layers * single.tp * single.cp, per_node = cluster.nodes.front().shape.gpus;
  Cluster large = cluster;
  if (gpus > gpu_count(cluster)) {
    if (cluster.nodes.size() != 1) return {};
    NodeShape& shape = large.nodes.front().shape;
    if (shape.nics == 0) give_nic(shape);
    large = with_nodes(std::move(large), static_cast<int>(ceil_div(gpus, per_node)));
  }
  auto answer = lower(model, large, single, {.ignore_memory = true, .profile = profile});
  if (std::holds_alternative<Infeasible>(answer)) return {};
  Plan& plan = std::get<Lowered>(answer).plan;
  forget_transfers(plan);
  const std::vector<StageDurations> times = stage_durations(plan, large);
  const double shards = strategy.zero.stage > 0 ? static_cast<double>(strategy.dp) * strategy.cp : 1;
  std::vector<ChainLayer> chain;
  for (std::size_t i = 0; i < times.size(); ++i) {
    ChainLayer layer{.forward = times[i].forward, .backward = times[i].backward};
    for (const Buffer& buffer : plan.roles[i].buffers) {
      const auto bytes = static_cast<double>(buffer.bytes.value);
      const bool sharded = (buffer.category == Category::Optimizer && strategy.zero.stage >= 1) ||
                           (buffer.category == Category::Gradients && strategy.zero.stage >= 2) ||
                           (buffer.category == Category::Parameters && strategy.zero.stage >= 3);
      if (buffer.resident) layer.states += bytes / (sharded ? shards : 1);
      if (buffer.resident && buffer.category == Category::Gradients) layer.weights += bytes;
      if (!buffer.resident && buffer.category == Category::Activations) layer.kept += bytes;
    }
    layer.output = sent(plan, plan.roles[i]);
    chain.push_back(layer);
  }
  return chain;
}

}  // namespace foreshard
