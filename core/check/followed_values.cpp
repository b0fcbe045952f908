// Whether the values of a role can be followed from the forward to the backward by what its instructions read and write.
#include <algorithm>
#include <set>

#include "core/check/check_plan_rules.h"

namespace foreshard {

// Not a part of a micro-batch's samples, in a buffer of values.
static bool reads_part(const Role& role, const RoleUses& uses, const RoleUses::Access& access) {
  const Buffer& buffer = role.buffers[access.buffer.index()];
  const bool of_samples = buffer.category == Category::Activations || buffer.category == Category::Transient;
  return of_samples && !buffer.resident && static_cast<std::size_t>(access.pieces) + 1 != uses.cuts(access.buffer).size();
}

bool follows_values(const Plan& plan, RoleId id, const RoleUses& uses) {
  const Role& role = plan.roles[id.index()];
  if (plan.updates > 1 || !role.ahead.empty()) return false;
  if (std::ranges::any_of(plan.roles, [&](const Role& other) { return other.axes != role.axes; })) return false;
  std::set<std::int32_t> seen;
  for (const Action& action : role.actions) {
    if (action.does.size() > 1) return false;
    if (!seen.insert(action.segment.value).second) continue;
    const std::vector<Instruction>& instructions = plan.segments[action.segment.index()].instructions;
    for (std::size_t i = 0; i < instructions.size(); ++i) {
      const auto* exchange = std::get_if<Exchange>(&instructions[i].what);
      if (exchange && exchange->slice.valid()) return false;
      const auto* compute = std::get_if<Compute>(&instructions[i].what);
      if (!compute) continue;
      if (is<ops::TakeRows, ops::PutRows, ops::Encode, ops::Decode>(compute->op)) return false;
      for (const RoleUses::Access& access : uses.of(action.segment, static_cast<std::int32_t>(i)))
        if (reads_part(role, uses, access)) return false;
    }
  }
  return true;
}

}  // namespace foreshard
