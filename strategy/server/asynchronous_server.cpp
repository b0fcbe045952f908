#include "strategy/server/asynchronous_server.h"

#include <algorithm>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "core/base/at.h"
#include "core/base/count_text.h"
#include "core/json/json_edit.h"
#include "core/network/network.h"
#include "core/plan/ranks.h"
#include "strategy/cost/framework_preset.h"
#include "strategy/cost/plan_costs.h"
#include "strategy/cost/settle_algorithms.h"
#include "strategy/lower/loss_scale.h"
#include "strategy/lower/memory_planner.h"
#include "strategy/resolve/compression.h"
#include "strategy/server/served_plan.h"

namespace foreshard {

namespace {

int parts_of_a_worker(const Plan& one) {
  int ranks = 1;
  for (const Axis& axis : one.axes) ranks *= axis.size;
  return ranks;
}

// Whether instructions of what trains meet ranks of other stages in a collective.
bool sums_over_stages(const Plan& one) {
  for (const Role& role : one.roles)
    for (const Action& action : role.actions)
      for (const Instruction& run : one.segments[action.segment.index()].instructions)
        if (const auto* what = std::get_if<Collective>(&run.what);
            what && trains(action) && !one.groups[what->group.index()].roles.empty())
          return true;
  return false;
}

// Why a worker cannot do an instruction.
std::optional<Infeasible> why_not_of(const Role& role, const Instruction& run) {
  const auto away = [&](const Use& use) { return role.buffers[use.buffer.index()].space != Space::Device; };
  const bool moves =
      std::holds_alternative<Copy>(run.what) && (std::ranges::any_of(run.reads, away) || std::ranges::any_of(run.writes, away));
  if (moves || std::holds_alternative<HostCompute>(run.what))
    return Infeasible{.reason = "a worker of an asynchronous server computes on its device only",
                      .would_help = {"--offload-activations none", "--policy auto"}};
  if (const auto* what = std::get_if<Compute>(&run.what); what && what->dynamic_scale)
    return Infeasible{.reason = "a dynamic loss scale needs the gradients of all workers", .would_help = {"--loss-scale 1024"}};
  return {};
}

std::optional<Infeasible> why_not_role(const Plan& one, const Role& role) {
  for (const Buffer& buffer : role.buffers)
    if (is_exchanged(buffer) && (!buffer.resident || buffer.space != Space::Device || buffer.offsets.size() != 1))
      return Infeasible{.reason = "a worker of an asynchronous server keeps its parameters and gradients on its device",
                        .would_help = {"--policy auto"}};
  for (const Action& action : role.actions)
    for (const Instruction& run : one.segments[action.segment.index()].instructions)
      if (auto refused = why_not_of(role, run)) return refused;
  return {};
}

std::optional<Infeasible> why_not(const Plan& one, int workers, int servers) {
  const auto refuse = [](std::string reason, std::string instead) {
    return Infeasible{.reason = std::move(reason), .would_help = {std::move(instead)}};
  };
  const int parts = parts_of_a_worker(one);
  const auto replicates = [](const Axis& axis) { return axis.size > 1 && axis.dense != DenseKind::Tensor; };
  if (workers < 1) return refuse("an asynchronous server has at least one worker", "--dp 1");
  if (std::ranges::any_of(one.axes, replicates))
    return refuse("each worker of an asynchronous server is one replica on whole sequences", "--cp 1");
  if (servers % parts != 0)
    return refuse("each GPU of a tensor-parallel group pushes to servers of its own: " + counted(servers, "server") +
                      " for tp " + std::to_string(parts),
                  "--servers " + std::to_string(parts));
  if (one.updates != 1) return refuse("a worker of an asynchronous server pushes gradients once in a run", "--schedule 1f1b");
  if (!one.placement.explicit_devices.empty())
    return refuse("the devices of an asynchronous server are 0, 1, ... in order", "--server-placement");
  for (const Role& role : one.roles)
    if (auto refused = why_not_role(one, role)) return refused;
  if (sums_over_stages(one)) return refuse("a worker of an asynchronous server has every stage on one rank", "--schedule 1f1b");
  return {};
}

// The static loss scale of the plan.
double loss_scale_of(const Plan& plan) {
  for (const Segment& segment : plan.segments)
    for (const Instruction& run : segment.instructions)
      if (const auto* what = std::get_if<Compute>(&run.what);
          what && what->phase == Phase::Update && takes_loss_scale(what->op, what->phase))
        return what->loss_scale;
  return 1;
}

// Puts the servers, which are the first ranks, on devices that the strategy asks for, and the workers on the others in their order.
void place_servers(Plan& plan, const Cluster& cluster, int servers, ServerPlacement placement) {
  if (placement == ServerPlacement::First) return;
  const Ranks ranks(plan);
  std::vector<DeviceId> devices;
  std::vector<RankId> workers;
  for (int r = 0; r < ranks.count(); ++r) devices.push_back({r});
  for (int r = servers; r < ranks.count(); ++r) workers.push_back({r});
  std::ranges::stable_sort(workers, {}, [&](RankId rank) { return ranks.device(rank).value; });
  const std::vector<std::int32_t> places = server_places(Network(cluster), devices, servers, placement);
  std::vector<DeviceId> chosen(devices.size());
  for (std::size_t s = 0; s < places.size(); ++s) chosen[s] = {places[s]};
  auto next = workers.begin();
  for (std::int32_t device = 0; device < ranks.count(); ++device)
    if (std::ranges::find(places, device) == places.end()) chosen[(next++)->index()] = {device};
  plan.placement.explicit_devices = std::move(chosen);
}

}  // namespace

std::variant<Plan, Infeasible> asynchronous_server(const Plan& one, int workers, int servers,
                                                   const std::optional<Coding>& coding) {
  if (auto refused = why_not(one, workers, servers)) return *std::move(refused);
  auto units = server_units(one, servers / parts_of_a_worker(one));
  if (auto* refused = std::get_if<Infeasible>(&units)) return std::move(*refused);
  ServedPlan served(one, workers, std::get<ServerUnits>(std::move(units)), coding);
  if (!served.complete())
    return Infeasible{.reason = "an update of a worker waits for its backward", .would_help = {"--sum-order ready"}};
  Plan plan = with_loss_scale(served.take(), loss_scale_of(one));
  plan_memory(plan);
  return plan;
}

Strategy worker_of(Strategy strategy) {
  strategy.batch.global /= strategy.dp;
  strategy.dp = strategy.zero.group = 1;
  strategy.communication.asynchronous = false;
  return strategy;
}

TunedRows rows_of_worker(const Strategy& strategy, TunedRows rows) {
  rows.servers = serving_gpus(strategy) / strategy.tp;
  return rows;
}

std::variant<Lowered, Infeasible> lower_asynchronous(const Model& model, const Cluster& cluster, const Strategy& strategy,
                                                     const LowerOptions& options, const TunedRows& tuned) {
  LowerOptions any_size = options;
  any_size.ignore_memory = true;
  auto one = lower(model, cluster, worker_of(strategy), any_size, rows_of_worker(strategy, tuned));
  if (auto* refused = std::get_if<Infeasible>(&one)) return std::move(*refused);
  const Plan& worker = std::get<Lowered>(one).plan;
  const int servers = serving_gpus(strategy);
  auto all = asynchronous_server(worker, strategy.dp, servers, gradient_coding(strategy));
  if (auto* refused = std::get_if<Infeasible>(&all)) return std::move(*refused);
  Plan& plan = std::get<Plan>(all);
  place_servers(plan, cluster, servers, strategy.communication.server_placement);
  plan.origin = with_json_value(worker.origin, "strategy", to_json(strategy), "origin");
  cost_plan(plan, cluster, framework_preset(strategy.framework), options.profile);
  if (!options.ignore_memory)
    if (auto refused = does_not_fit(plan, cluster)) return *std::move(refused);
  return Lowered{.plan = std::move(plan), .strategy = strategy};
}

}  // namespace foreshard
