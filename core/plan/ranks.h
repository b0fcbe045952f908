// The ranks of a Plan: their numbers, coordinates, devices, group members and peers.
// Ranks are numbered role by role; inside a role by coordinates, the last axis of Role::axes fastest.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "core/plan/plan.h"

namespace foreshard {

class Ranks {
 public:
  explicit Ranks(const Plan& plan);  // the plan must outlive it

  int count() const { return static_cast<int>(role_of_.size()); }
  int count(RoleId role) const { return sizes_[role.index()]; }
  RoleId role(RankId rank) const { return role_of_[rank.index()]; }
  RankId first(RoleId role) const { return {firsts_[role.index()]}; }
  int coordinate(RankId rank, AxisId axis) const;  // 0 if its role does not have the axis
  DeviceId device(RankId rank) const { return device_of_[rank.index()]; }

  // The rank of `role` with the same coordinates, and coordinate 0 on axes that only `role` has. Invalid if the rank has a coordinate
  // above 0 on an axis that `role` lacks.
  RankId twin(RankId rank, RoleId role) const;
  RankId peer(RankId rank, const Peer& peer) const;  // invalid if the role or the coordinate does not exist
  // Of the group instance that `rank` belongs to, in the order of Group.
  std::vector<RankId> members(GroupId group, RankId rank) const;
  int members(GroupId group, RoleId role) const;  // number of members of an instance that has a rank of `role`

 private:
  void place();
  void coordinates(RoleId role, AxisId axis, std::span<std::int32_t> of_rank) const;  // of all ranks of the role
  bool has(RoleId role, AxisId axis) const { return strides_[role.index()][axis.index()] > 0; }
  int size(AxisId axis) const { return plan_->axes[axis.index()].size; }

  const Plan* plan_;
  std::vector<RoleId> role_of_;
  std::vector<DeviceId> device_of_;
  std::vector<int> sizes_, firsts_;
  std::vector<std::vector<int>> strides_;  // [role][axis id]: 0 when absent
  std::vector<int> shape_of_;              // [role]: the first role with the same strides
};

}  // namespace foreshard
