// Versions of the weights: an action that names a version reads parameters that an update of that version wrote, in a run that others follow
// and precede. Versions count up over the runs. Before the first update all blocks hold the initial weights, which count as any version up to
// the one that this update replaces.
#include <algorithm>
#include <optional>

#include "core/check/check_plan_rules.h"

namespace foreshard {
namespace {

class VersionCheck {
 public:
  VersionCheck(const Plan& plan, RoleId id, const CheckOrder& order, const RoleUses& uses, Defects& defects)
      : plan_(plan),
        role_(plan.roles[id.index()]),
        id_(id),
        order_(order),
        uses_(uses),
        defects_(defects),
        held_(uses.blocks()) {}

  void run() {
    if (!counts_versions()) return;
    for (int s = 0; s < order_.count() && !defects_.full(); ++s) step(order_.step(s));
  }

 private:
  // Synchronous plans have one version in a run and do not count them.
  bool counts_versions() {
    for (const Action& action : role_.actions)
      for (const Does& does : action.does) {
        if (does.work != Work::Update) continue;
        if (does.version < 1) return false;
        if (!initial_) initial_ = does.version - 1;
      }
    return initial_.has_value();
  }

  bool is_parameter(const RoleUses::Access& access) const {
    const Buffer& buffer = role_.buffers[access.buffer.index()];
    return buffer.resident && std::ranges::any_of(buffer.holds, [&](const Shard& shard) {
             return shard.part == TensorPart::Value && !plan_.tensors[shard.tensor.index()].frozen;
           });
  }
  std::optional<std::int64_t>& held(const RoleUses::Access& access, const Action& action) {
    return held_[uses_.block(access.buffer, value_of(access.slot, action))];
  }

  void step(const CheckStep& here) {
    const Action& action = role_.actions[static_cast<std::size_t>(here.action)];
    if (action.does.size() != 1) return;
    const Does& does = action.does[0];
    const std::int64_t version = std::int64_t{here.run} * plan_.updates + does.version;
    const Instruction& instruction =
        plan_.segments[action.segment.index()].instructions[static_cast<std::size_t>(here.instruction)];
    const bool copies = std::holds_alternative<Copy>(instruction.what);
    const RoleUses::Access* from = nullptr;
    for (const RoleUses::Access& access : uses_.of(action.segment, here.instruction)) {
      if (!is_parameter(access)) continue;
      if (!access.write) {
        from = &access;
        if (does.work != Work::Update) read(here, access, does.version < 0 ? newest_ : version);
      } else if (does.work == Work::Update) {
        if (copies && from)
          held(access, action) = held(*from, action);  // a version is kept
        else
          held(access, action) = newest_ = version;
      }
    }
  }

  void read(const CheckStep& here, const RoleUses::Access& access, std::optional<std::int64_t> expected) {
    const Action& action = role_.actions[static_cast<std::size_t>(here.action)];
    std::optional<std::int64_t> found = held(access, action);
    if (!expected || found == expected || (!found && *expected <= *initial_)) return;
    if (!found) found = initial_;
    const std::int64_t before = std::int64_t{here.run} * plan_.updates;
    defects_.add("weight-version", id_, here.action, here.instruction,
                 "reads weight version " + std::to_string(*expected - before) + " of the run in " +
                     block_name(role_, access.buffer, value_of(access.slot, action)) + ", which holds version " +
                     std::to_string(*found - before));
  }

  const Plan& plan_;
  const Role& role_;
  RoleId id_;
  const CheckOrder& order_;
  const RoleUses& uses_;
  Defects& defects_;
  std::vector<std::optional<std::int64_t>> held_;  // [block]: the version that it holds
  std::optional<std::int64_t> newest_ = {};        // made by the last update
  std::optional<std::int64_t> initial_ = {};       // the version of the initial weights
};

}  // namespace

void check_versions(const Plan& plan, RoleId role, const CheckOrder& order, const RoleUses& uses, Defects& defects) {
  VersionCheck(plan, role, order, uses, defects).run();
}

}  // namespace foreshard
