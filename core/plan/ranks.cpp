#include "core/plan/ranks.h"

#include <algorithm>
#include <numeric>

#include "core/base/error.h"

namespace foreshard {

Ranks::Ranks(const Plan& plan) : plan_(&plan) {
  int first = 0;
  for (std::size_t r = 0; r < plan.roles.size(); ++r) {
    std::vector<int> strides(plan.axes.size(), 0);
    const std::vector<AxisId>& axes = plan.roles[r].axes;
    int stride = 1;
    for (auto axis = axes.rbegin(); axis != axes.rend(); ++axis) {
      FS_ASSERT(axis->valid() && axis->index() < plan.axes.size() && strides[axis->index()] == 0);
      strides[axis->index()] = stride;
      stride *= size(*axis);
    }
    const auto like = std::find(strides_.begin(), strides_.end(), strides);
    shape_of_.push_back(static_cast<int>(like - strides_.begin()));
    strides_.push_back(std::move(strides));
    firsts_.push_back(first);
    sizes_.push_back(stride);
    role_of_.insert(role_of_.end(), static_cast<std::size_t>(stride), RoleId{static_cast<std::int32_t>(r)});
    first += stride;
  }
  place();
}

int Ranks::coordinate(RankId rank, AxisId axis) const {
  const RoleId role = role_of_[rank.index()];
  if (!has(role, axis)) return 0;
  return (rank.value - firsts_[role.index()]) / strides_[role.index()][axis.index()] % size(axis);
}

// Without a division per rank: a coordinate stays the same for one stride of ranks, and comes again after all its values.
void Ranks::coordinates(RoleId role, AxisId axis, std::span<std::int32_t> of_rank) const {
  std::fill(of_rank.begin(), of_rank.end(), 0);
  if (!has(role, axis)) return;
  const auto stride = static_cast<std::size_t>(strides_[role.index()][axis.index()]);
  const int values = size(axis);
  for (std::size_t first = 0; first < of_rank.size();)
    for (int c = 0; c < values; ++c, first += stride)
      std::fill_n(of_rank.begin() + static_cast<std::ptrdiff_t>(first), stride, c);
}

// Ranks take devices in the order of (role, coordinates), where the last entry of the placement order is most
// significant. Sorting stably by one key after the other, fastest first, gives that order without holes for roles of
// different shapes.
void Ranks::place() {
  constexpr AxisId kRole = Placement::kRole;
  std::vector<AxisId> keys = plan_->placement.order;
  const auto append = [&](AxisId key) {
    if (std::find(keys.begin(), keys.end(), key) == keys.end()) keys.push_back(key);
  };
  for (std::size_t a = 0; a < plan_->axes.size(); ++a) append({static_cast<std::int32_t>(a)});
  append(kRole);

  std::vector<std::int32_t> order(role_of_.size()), next(role_of_.size()), value(role_of_.size());
  std::iota(order.begin(), order.end(), 0);
  for (const AxisId key : keys) {
    FS_ASSERT(key == kRole || key.index() < plan_->axes.size());
    const std::size_t values = key == kRole ? plan_->roles.size() : static_cast<std::size_t>(size(key));
    if (values == 1) continue;
    for (std::size_t r = 0; r < firsts_.size(); ++r) {
      const auto first = value.begin() + firsts_[r];
      if (key == kRole)
        std::fill_n(first, sizes_[r], static_cast<std::int32_t>(r));
      else
        coordinates({static_cast<std::int32_t>(r)}, key, {first, static_cast<std::size_t>(sizes_[r])});
    }
    std::vector<std::int32_t> place(values + 1, 0);
    for (const std::int32_t each : value) ++place[static_cast<std::size_t>(each) + 1];
    std::partial_sum(place.begin(), place.end(), place.begin());
    for (const std::int32_t rank : order)
      next[static_cast<std::size_t>(place[static_cast<std::size_t>(value[static_cast<std::size_t>(rank)])]++)] = rank;
    order.swap(next);
  }
  device_of_.resize(role_of_.size());
  for (std::size_t d = 0; d < order.size(); ++d)
    device_of_[static_cast<std::size_t>(order[d])] = {static_cast<std::int32_t>(d)};
  const std::vector<DeviceId>& fixed = plan_->placement.explicit_devices;
  for (std::size_t r = 0; r < std::min(fixed.size(), device_of_.size()); ++r)
    if (fixed[r].valid()) device_of_[r] = fixed[r];
}

RankId Ranks::twin(RankId rank, RoleId role) const {
  const RoleId own = role_of_[rank.index()];
  const std::int32_t local = rank.value - firsts_[own.index()];
  if (shape_of_[own.index()] == shape_of_[role.index()]) return {firsts_[role.index()] + local};
  const std::vector<int>&from = strides_[own.index()], &to = strides_[role.index()];
  std::int32_t there = 0;
  for (std::size_t a = 0; a < from.size(); ++a) {
    if (from[a] == 0) continue;
    const int at = local / from[a] % plan_->axes[a].size;
    if (at > 0 && to[a] == 0) return {};
    there += at * to[a];
  }
  return {firsts_[role.index()] + there};
}

RankId Ranks::peer(RankId rank, const Peer& peer) const {
  const std::int64_t index = std::int64_t{role_of_[rank.index()].value} + peer.role_shift;
  if (index < 0 || index >= static_cast<std::int64_t>(plan_->roles.size())) return {};
  const RoleId role{static_cast<std::int32_t>(index)};
  RankId there = twin(rank, role);
  if (!there.valid() || peer.axes.empty() || peer.shift == 0) return there;
  std::int64_t size = 1, at = 0;
  for (const AxisId axis : peer.axes) {
    if (!has(role, axis)) return {};
    size *= this->size(axis), at = at * this->size(axis) + coordinate(there, axis);
  }
  std::int64_t moved = (((at + peer.shift) % size) + size) % size;
  for (auto axis = peer.axes.rbegin(); axis != peer.axes.rend(); ++axis) {
    const int of_axis = this->size(*axis), to = static_cast<int>(moved % of_axis);
    there.value += (to - coordinate(there, *axis)) * strides_[role.index()][axis->index()];
    moved /= of_axis;
  }
  return there;
}

int Ranks::members(GroupId group, RoleId role) const {
  const Group& g = plan_->groups[group.index()];
  int count = 0;
  const auto add = [&](RoleId r) {
    int here = 1;
    for (const AxisId axis : g.over)
      if (has(r, axis)) here *= size(axis);
    count += here;
  };
  for (const RoleId r : g.roles) add(r);
  if (g.roles.empty()) add(role);
  return count;
}

std::vector<RankId> Ranks::members(GroupId group, RankId rank) const {
  const Group& g = plan_->groups[group.index()];
  const RoleId own = role_of_[rank.index()];
  const std::vector<RoleId> roles = g.roles.empty() ? std::vector<RoleId>{own} : g.roles;
  std::vector<RankId> all;
  all.reserve(static_cast<std::size_t>(members(group, own)));
  for (const RoleId role : roles) {
    const std::vector<int>& strides = strides_[role.index()];
    std::int32_t base = firsts_[role.index()];
    for (std::size_t a = 0; a < strides.size(); ++a) {
      const AxisId axis{static_cast<std::int32_t>(a)};
      const bool free = std::find(g.over.begin(), g.over.end(), axis) != g.over.end();
      if (!free) base += coordinate(rank, axis) * strides[a];
    }
    const std::size_t begin = all.size();
    all.push_back({base});
    for (const AxisId axis : g.over) {  // each axis multiplies what is there, the last one becoming the fastest
      if (!has(role, axis)) continue;
      std::vector<RankId> wider;
      for (std::size_t i = begin; i < all.size(); ++i)
        for (int c = 0; c < size(axis); ++c) wider.push_back({all[i].value + c * strides[axis.index()]});
      all.resize(begin);
      all.insert(all.end(), wider.begin(), wider.end());
    }
  }
  return all;
}

}  // namespace foreshard
