#include "strategy/lower/chunk_budget.h"

#include <algorithm>

#include "core/base/count_text.h"
#include "core/result/memory_timeline.h"
#include "strategy/cost/framework_memory.h"
#include "strategy/cost/runtime_policy.h"
#include "strategy/lower/memory_planner.h"
#include "strategy/lower/role_program.h"
#include "strategy/state/state_program.h"

namespace foreshard {

namespace {

struct FirstStep {
  Bytes others = {}, largest = {};  // what is not chunks; the largest chunk
};

FirstStep without_idle_chunks(const Lowering& lowering) {
  Lowering trial = lowering;
  SharedPrograms shared;
  add_role(trial, 0, shared);
  plan_memory(trial.plan, {.share_kept = trial.tables.activations.shares_kept()});
  const Role& role = trial.plan.roles.front();
  FirstStep found{.others = arena_bytes(role, Space::Device) + framework_memory(lowering.strategy) +
                            attention_workspace(trial.plan, lowering.cluster, lowering.strategy)};
  for (const Buffer& buffer : role.buffers) {
    if (buffer.category != Category::Parameters || !buffer.name.starts_with(kGatheredPlaces)) continue;
    found.others = found.others - buffer.bytes * static_cast<std::int64_t>(buffer.offsets.size());
    found.largest = std::max(found.largest, buffer.bytes);
  }
  return found;
}

}  // namespace

std::optional<Infeasible> set_chunk_budget(Lowering& lowering, bool at_least_largest) {
  for (StateRow& row : lowering.tables.state) {
    auto* rule = std::get_if<ChunkRule>(&row.parameters.stays.rule);
    if (!rule || rule->cap_ratio == 0) continue;
    FS_ASSERT(lowering.tables.schedule.ranks() == 1);  // resolve_policy refuses others
    const FirstStep step = without_idle_chunks(lowering);
    const Bytes element = size_of(row.parameters.dtype);
    const Bytes device = gpu_of(lowering.cluster, lowering.cluster.nodes.front().shape.gpu).memory;
    const std::int64_t largest = step.largest.value / element.value;
    rule->budget = rule->budget_of(device, step.others, element);
    if (rule->budget < largest && !at_least_largest)
      return Infeasible{.reason = "policy " + policy_of(lowering.strategy)->name +
                                  ": beside everything else the device leaves " + count_text(rule->budget) +
                                  " elements to chunks of parameters; the largest chunk has " + count_text(largest),
                        .would_help = {"--policy gemini_cpu", "--micro-batch 1", "--recompute full"}};
    rule->budget = std::max(rule->budget, largest);
  }
  return {};
}

}  // namespace foreshard
