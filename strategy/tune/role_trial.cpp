#include "strategy/tune/role_trial.h"

#include "core/network/network.h"
#include "core/plan/ranks.h"
#include "core/result/memory_timeline.h"
#include "strategy/cost/framework_memory.h"
#include "strategy/lower/begin_lowering.h"
#include "strategy/lower/memory_planner.h"
#include "strategy/lower/role_program.h"

namespace foreshard {

// [pipeline rank]: the kind of its GPU, with ranks placed on devices as in the whole plan.
static std::vector<std::string> device_kinds(const Lowering& lowering) {
  const auto pp = static_cast<std::size_t>(lowering.strategy.pp);
  if (lowering.cluster.nodes.size() == 1) return std::vector<std::string>(pp, lowering.cluster.nodes.front().shape.gpu);
  Plan bare = lowering.plan;
  for (std::size_t role = 0; role < pp; ++role) {
    bare.roles.push_back({.name = std::to_string(role)});
    bare.roles.back().axes = lowering.axes;
  }
  const Network network(lowering.cluster);
  const Ranks ranks(bare);
  std::vector<std::string> kinds;
  for (std::int32_t role = 0; role < lowering.strategy.pp; ++role)
    kinds.push_back(network.gpu(ranks.device(ranks.first({role}))).name);
  return kinds;
}

RoleTrial::RoleTrial(const Lowering& base, bool by_order)
    : lowering(base), base_(base), by_order_(by_order), kinds_(device_kinds(base)) {
  const Gpu& first = gpu_of(base.cluster, base.cluster.nodes.front().shape.gpu);
  const auto reserve = static_cast<std::int64_t>(base.strategy.device_memory.reserve * static_cast<double>(first.memory.value));
  beside_ = framework_memory(base.strategy) + attention_workspace(base.graph, base.cluster, base.strategy) + Bytes{reserve};
}

Bytes RoleTrial::room(int rank) const { return gpu_of(base_.cluster, kinds_[static_cast<std::size_t>(rank)]).memory - beside_; }

Bytes RoleTrial::arena(int rank, Bytes enough) {
  lowering.plan = base_.plan, lowering.embedding = {};
  SharedPrograms shared;
  add_role(lowering, rank, shared);
  MemoryPlanOptions options{.share_kept = lowering.tables.activations.shares_kept()};
  plan_memory(lowering.plan, options);
  const Role& role = lowering.plan.roles.back();
  if (by_order_ && arena_bytes(role, Space::Device) > enough && packs_by_order(lowering.tables)) {
    options.by_order = true;
    plan_memory(lowering.plan, options);
  }
  return arena_bytes(role, Space::Device);
}

std::string budget_that_fits(Bytes arena) {
  constexpr std::int64_t kMib = 1 << 20;
  return "--offload-budget " + std::to_string((arena.value + kMib - 1) / kMib) + "MiB";
}

}  // namespace foreshard
