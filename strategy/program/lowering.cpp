#include "strategy/program/lowering.h"

#include <algorithm>
#include <iterator>

namespace foreshard {

// Whether these kinds reach all replicas of a stage, those on other roles too. Shards are those of the ranks of one role.
static bool reaches_replicas(const Kinds& kinds) {
  return std::ranges::any_of(kinds, [](const AxisKind& kind) { return kind == AxisKind{DenseKind::OuterData}; });
}

std::vector<AxisId> Lowering::over(const Kinds& kinds) const {
  std::vector<AxisId> found;
  if (kinds == Kinds{}) return found;
  std::ranges::copy_if(axes, std::back_inserter(found), [&](AxisId axis) { return is_of(plan.axes[axis.index()], kinds); });
  return found;
}

bool Lowering::places_by_size() const {
  constexpr std::int64_t kMostMicrobatches = 16;
  return std::holds_alternative<LayerList>(model.shape) &&
         strategy.batch.global <= kMostMicrobatches * strategy.batch.micro * strategy.dp;
}

int Lowering::ranks(const Kinds& kinds) const {
  int count = reaches_replicas(kinds) && !replica_roles.empty() ? static_cast<int>(replica_roles.size()) : 1;
  for (const AxisId axis : axes)
    if (is_of(plan.axes[axis.index()], kinds)) count *= plan.axes[axis.index()].size;
  return count;
}

void Lowering::add_group(const LayoutGroup& group, std::vector<RoleId> roles) {
  std::vector<AxisId> along = over(group.over);
  if (along.empty() && roles.empty()) return;
  groups.emplace_back(group, GroupId{static_cast<std::int32_t>(plan.groups.size())});
  plan.groups.push_back({group.name, std::move(roles), std::move(along)});
}

GroupId Lowering::group(const Kinds& kinds, StreamId stream, const std::string& name) {
  if (ranks(kinds) == 1) return {};
  const std::vector<RoleId> roles = reaches_replicas(kinds) ? replica_roles : std::vector<RoleId>{};
  for (const auto& [known, id] : groups)
    if (known.over == kinds && known.stream == stream && known.roles == LayoutGroup::Roles::Own &&
        plan.groups[id.index()].roles == roles)
      return id;
  add_group({name, kinds, stream}, roles);
  return groups.back().second;
}

void Lowering::begin_role(int rank) {
  const std::vector<int>& slots = tables.schedule.weight_slots;
  weight_slots = slots.empty() ? 1 : slots[static_cast<std::size_t>(rank)];
  if (tables.schedule.routes == 1) return;
  const int mirrored = tables.schedule.ranks() - 1 - rank;
  replica_roles = {{std::min(rank, mirrored)}, {std::max(rank, mirrored)}};
  for (const LayoutGroup& each : tables.layout.groups)
    if (each.roles == LayoutGroup::Roles::Own) group(each.over, each.stream, each.name);
}

StreamId Lowering::hidden_stream() const {
  const bool shares_experts = ranks({ExpertKind::Expert, ExpertKind::OuterExpert}) > 1;
  for (const CommunicationRow& row : tables.communication.rows)
    if (row.purpose == Purpose::Experts && shares_experts) return row.stream;
  return communication(Purpose::Operator).stream;
}

GroupId Lowering::group_of_roles(LayoutGroup::Roles roles) const {
  for (const auto& [known, id] : groups)
    if (known.roles == roles) return id;
  return {};
}

}  // namespace foreshard
