#include "strategy/memory/own_slots.h"

#include <algorithm>
#include <span>
#include <utility>

#include "core/plan/equal_roles.h"
#include "core/plan/program.h"
#include "core/result/memory_timeline.h"
#include "strategy/memory/ejection.h"
#include "strategy/memory/ordered_blocks.h"
#include "strategy/memory/packing.h"
#include "strategy/memory/slot_numbers.h"
#include "strategy/memory/slot_uses.h"

namespace foreshard {

namespace {

// Above the order bound by one part in kTooFar, a role is packed anew; by one part in kClose, the first packing is taken. The time of packing
// grows with the square of the blocks.
constexpr std::int64_t kTooFar = 20, kClose = 25;
constexpr OrderedLimits kOwnSlotLimits{.steps = 200'000, .blocks = 16'000};
constexpr PackOptions kOwnSlotPacking{.moves = 300, .tests = 200'000'000, .thorough = true};

Bytes above(Bytes bound, std::int64_t share) { return bound + Bytes{bound.value / share}; }

// One of several roles of a plan, its order bound, and the alignment of its blocks.
struct BoundRole {
  std::size_t role = 0;
  Bytes bound = {};
  std::int64_t alignment = 1;
};

Bytes arena_of(const Plan& plan, const BoundRole& one) { return arena_bytes(plan.roles[one.role], Space::Device); }

bool is_too_far(const Plan& plan, const BoundRole& one) {
  return arena_of(plan, one) > std::max(above(one.bound, kTooFar), one.bound + kWorthPacking);
}

// The blocks of a role that are not resident; none if there are too many.
struct RoleBlocks {
  OrderedBlocks ordered = {};
  std::vector<TimedBlock> timed = {};
  Bytes resident = {};  // the blocks lie above it
};

RoleBlocks blocks_of(const Plan& plan, const MeetingPoints& meetings, const BoundRole& one) {
  const RoleId id{static_cast<std::int32_t>(one.role)};
  RoleBlocks of{.ordered = ordered_blocks(plan, meetings, id, Space::Device, kOwnSlotLimits)};
  for (const OrderedBlock& block : of.ordered.blocks) of.timed.push_back(block.block);
  for (const Buffer& buffer : plan.roles[one.role].buffers)
    if (buffer.resident && buffer.space == Space::Device)
      of.resident += Bytes{round_up(buffer.bytes.value, one.alignment) * static_cast<std::int64_t>(buffer.offsets.size())};
  return of;
}

Bytes& offset_of(Role& role, const OrderedBlock& block) {
  return role.buffers[block.buffer.index()].offsets[static_cast<std::size_t>(block.slot)];
}

void set_offsets(Role& role, const RoleBlocks& of, const Packing& packing) {
  for (std::size_t i = 0; i < of.timed.size(); ++i) offset_of(role, of.ordered.blocks[i]) = of.resident + packing.offsets[i];
}

// False: it has too many blocks.
bool pack_role(Plan& plan, const MeetingPoints& meetings, const BoundRole& one) {
  const RoleBlocks of = blocks_of(plan, meetings, one);
  if (of.timed.empty()) return false;
  PackOptions options = kOwnSlotPacking;
  options.alignment = one.alignment;
  set_offsets(plan.roles[one.role], of, pack(of.timed, of.ordered.meets, options, above(one.bound, kClose) - of.resident));
  return true;
}

// By ejection, from the packing that the role has and from nothing.
void eject(Plan& plan, const MeetingPoints& meetings, const BoundRole& one) {
  const RoleBlocks of = blocks_of(plan, meetings, one);
  const Bytes limit = above(one.bound, kTooFar) - of.resident;
  if (of.timed.empty() || pairs_bound(of.timed, of.ordered.meets, one.alignment) > limit) return;
  Role& role = plan.roles[one.role];
  std::vector<Bytes> current;
  for (const OrderedBlock& block : of.ordered.blocks) current.push_back(offset_of(role, block) - of.resident);
  for (const std::span<const Bytes> first : {std::span<const Bytes>(current), std::span<const Bytes>()})
    if (const auto packing = pack_by_ejection(of.timed, of.ordered.meets, limit, one.alignment, first))
      return set_offsets(role, of, *packing);
}

// One role alone: its arguments change, the segments do not.
void pack_uses(Plan& plan, const MeetingPoints& meetings, const BoundRole& one) {
  const Bytes arena = arena_of(plan, one);
  Role before = plan.roles[one.role];
  const RoleId id{static_cast<std::int32_t>(one.role)};
  if (!number_uses(plan, id) || !pack_role(plan, meetings, one) || arena_of(plan, one) >= arena)
    plan.roles[one.role] = std::move(before);
}

// Changes the memory of these roles one after the other. Of roles that run equally and have the same bound, `change` is asked for one.
template <class Change>
void once_each(Plan& plan, const std::vector<BoundRole>& roles, Change change) {
  const std::vector<std::size_t> first = first_equal_roles(plan);
  for (auto one = roles.begin(); one != roles.end(); ++one) {
    const auto other = std::find_if(roles.begin(), one, [&](const BoundRole& earlier) {
      return first[earlier.role] == first[one->role] && earlier.bound == one->bound;
    });
    if (other == one)
      change(*one);
    else
      copy_memory(plan, other->role, one->role);
  }
}

// What the roles take above the limit, then in all.
std::pair<Bytes, Bytes> cost_of(const Plan& plan, const std::vector<BoundRole>& roles) {
  Bytes excess = {}, sum = {};
  for (const BoundRole& one : roles) {
    const Bytes arena = arena_of(plan, one);
    sum += arena;
    excess += std::max(Bytes{}, arena - above(one.bound, kTooFar));
  }
  return {excess, sum};
}

// The roles of a group, which share segments, without the other roles of their plan.
struct RoleGroup {
  Plan plan = {};
  std::vector<BoundRole> roles = {};
};

std::vector<std::size_t> indices(const std::vector<BoundRole>& roles) {
  std::vector<std::size_t> of;
  for (const BoundRole& one : roles) of.push_back(one.role);
  return of;
}

RoleGroup group_of(const Plan& plan, const std::vector<BoundRole>& roles) {
  RoleGroup group{.plan = roles_alone(plan, indices(roles))};
  for (const BoundRole& one : roles) group.roles.push_back({group.roles.size(), one.bound, one.alignment});
  return group;
}

// Every use of every slot of these roles has a slot of its own. False: there are too many blocks.
bool pack_all_uses(RoleGroup& group) {
  const MeetingPoints meetings = find_meeting_points(group.plan);
  bool packed = true;
  once_each(group.plan, group.roles, [&](const BoundRole& one) {
    if (!packed) return;
    number_uses(group.plan, {static_cast<std::int32_t>(one.role)});
    packed = pack_role(group.plan, meetings, one);
  });
  return packed;
}

// Scratch gets the slot of its micro-batch, then each of its lifetimes a buffer.
void pack_scratch(Plan& plan, const std::vector<BoundRole>& roles) {
  RoleGroup best = group_of(plan, roles), next = best;
  for (const auto divide : {&number_scratch, &split_scratch}) {
    if (!divide(next.plan)) continue;
    RoleGroup packed = next;
    if (!pack_all_uses(packed)) break;
    if (cost_of(packed.plan, packed.roles) < cost_of(best.plan, best.roles)) best = std::move(packed);
    if (cost_of(best.plan, best.roles).first == Bytes{}) break;
  }
  put_back(std::move(best.plan), indices(roles), plan);
}

}  // namespace

void pack_own_slots(Plan& plan, const std::vector<std::optional<Bytes>>& bounds, std::int64_t alignment) {
  std::optional<MeetingPoints> meetings;  // do not depend on slots
  for (const std::vector<std::size_t>& group : sharing_roles(plan)) {
    std::vector<BoundRole> roles;
    for (const std::size_t r : group)
      if (bounds[r]) roles.push_back({r, *bounds[r], alignment});
    const auto any_too_far = [&] {
      return std::ranges::any_of(roles, [&](const BoundRole& one) { return is_too_far(plan, one); });
    };
    if (!any_too_far()) continue;
    if (!meetings) meetings = find_meeting_points(plan);
    once_each(plan, roles, [&](const BoundRole& one) {
      if (is_too_far(plan, one)) pack_uses(plan, *meetings, one);
    });
    if (roles.size() == group.size() && any_too_far()) pack_scratch(plan, roles);
    once_each(plan, roles, [&](const BoundRole& one) {
      if (is_too_far(plan, one)) eject(plan, *meetings, one);
    });
  }
}

}  // namespace foreshard
