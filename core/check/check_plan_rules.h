// The rules of check_plan, one function per group of rules, and what they share. Internal to core/check.
#pragma once

#include <cstdint>
#include <set>
#include <string>
#include <tuple>
#include <vector>

#include "core/check/check_plan.h"
#include "core/check/check_plan_order.h"

namespace foreshard {

using AxisSet = std::uint64_t;  // bit i: axis i; axes from 63 on are ignored, bit 63 is unused
inline constexpr std::size_t kMostAxes = 63;
constexpr AxisSet bit(AxisId axis) { return axis.index() < kMostAxes ? AxisSet{1} << axis.index() : 0; }

// Collects the defects that the rules find, at most `most`.
class Defects {
 public:
  Defects(const Plan& plan, int most) : plan_(&plan), most_(static_cast<std::size_t>(most < 0 ? 0 : most)) {}

  bool full() const { return found_.size() >= most_; }
  bool empty() const { return found_.empty(); }
  void add(const char* rule, std::string where, std::string what);
  // Adds a defect of an instruction of an action. A rule is reported once per (role, segment, instruction).
  void add(const char* rule, RoleId role, std::int32_t action, std::int32_t instruction, std::string what);
  std::vector<PlanDefect> take() { return std::move(found_); }

 private:
  const Plan* plan_;
  std::size_t most_;
  std::vector<PlanDefect> found_;
  std::set<std::tuple<std::string, std::int32_t, std::int32_t, std::int32_t>> told_;  // reported before
};

// The memory accesses of one role. Each slot of a buffer is cut into pieces at every byte border of any access to that buffer, so two
// accesses share bytes exactly if they share a piece. Blocks and pieces are numbered over all buffers of the role.
class RoleUses {
 public:
  struct Access {
    BufferId buffer = {};
    Slot slot = {};
    std::int32_t first = 0, pieces = 0;  // the first piece, counted from that of the slot, and the number of pieces
    bool write = false;
  };

  RoleUses(const Plan& plan, const Role& role);

  const std::vector<Access>& of(SegmentId segment, std::int32_t instruction) const {  // its reads, then its writes
    return accesses_[segment.index()][static_cast<std::size_t>(instruction)];
  }
  std::size_t block(BufferId buffer, std::int32_t slot) const {  // the number of this block
    return blocks_[buffer.index()] + static_cast<std::size_t>(slot);
  }
  std::size_t piece(BufferId buffer, std::int32_t slot) const {  // the number of the slot's first piece
    return pieces_[buffer.index()] + static_cast<std::size_t>(slot) * (cuts_[buffer.index()].size() - 1);
  }
  std::size_t blocks() const { return block_count_; }
  std::size_t pieces() const { return piece_count_; }
  const std::vector<std::int64_t>& cuts(BufferId buffer) const { return cuts_[buffer.index()]; }  // bytes: 0 .. size

 private:
  void cut(const Plan& plan, const Role& role, const std::vector<char>& played);

  std::vector<std::vector<std::vector<Access>>> accesses_;  // [segment][instruction]
  std::vector<std::vector<std::int64_t>> cuts_;             // [buffer][border], in bytes
  std::vector<std::size_t> blocks_, pieces_;                // [buffer]: number of its first block, of its first piece
  std::size_t block_count_ = 0, piece_count_ = 0;
};

// Of the part of the tensor that a rank of the role holds, before a flat cut.
std::int64_t shard_bytes(const Plan& plan, const Role& role, const Buffer& buffer, const Shard& shard);

std::string block_name(const Role& role, BufferId buffer, std::int32_t slot);  // for messages

// Which steps of which roles meet in exchanges and collectives, as check_meetings sees them. A step is counted within one run of its role.
struct CheckedMeetings {
  struct Exchange {  // step `send` of role `from` meets step `receive` of role `to`
    RoleId from = {}, to = {};
    std::int32_t send = 0, receive = 0;
    auto operator<=>(const Exchange&) const = default;
  };
  struct Call {  // the call number `number` of the role to the group, from 0
    GroupId group = {};
    RoleId role = {};
    std::int32_t step = 0, number = 0;
    auto operator<=>(const Call&) const = default;
  };
  std::vector<Exchange> exchanges = {};
  std::vector<Call> calls = {};
};
CheckedMeetings checked_meetings(const Plan& plan);

// The rules by function (names as in core/check/check_plan.h). Meetings: exchange-*, collective-*, group-*, peer-missing, deadlock,
// operand-missing. Lives: *-acquire*, *-unordered, life-not-closed, use-outside-life. Shards: shard-axes, frozen-tensor. Context:
// context-split. Gradients: gradient-*-reduced, update-without-gradient. Contributions: gradient-lost, gradient-repeated. Partial sums:
// partial-sum, slice-not-gathered. Work: work-*, update-count, weight-version, rate-delay. Versions: weight-version. Capacity: capacity,
// host-capacity.
void check_meetings(const Plan& plan, const std::vector<CheckOrder>& orders, Defects& defects);
void check_lives(const Plan& plan, RoleId role, const CheckOrder& runs, const RoleUses& uses, Defects& defects);
void check_shards(const Plan& plan, RoleId role, Defects& defects);
void check_context(const Plan& plan, RoleId role, Defects& defects);
void check_gradients(const Plan& plan, RoleId role, const RoleUses& uses, Defects& defects);
void check_operands(const Plan& plan, RoleId role, const RoleUses& uses, Defects& defects);
void check_pairs(const Plan& plan, RoleId role, Defects& defects);
void check_scales(const Plan& plan, Defects& defects);
void check_tensors(const Plan& plan, RoleId role, Defects& defects);
void check_values(const Plan& plan, RoleId role, const RoleUses& uses, Defects& defects);
// Whether values can be followed from the forward to the backward: no weights that are updated in between (several updates), no parts of a
// micro-batch, no codes, no rows of some tokens, no cells of two works, no slices from another stage, the same axes in all roles.
bool follows_values(const Plan& plan, RoleId role, const RoleUses& uses);
void check_contributions(const Plan& plan, RoleId role, const RoleUses& uses, Defects& defects);
void check_partial_sums(const Plan& plan, RoleId role, const RoleUses& uses, Defects& defects);
void check_versions(const Plan& plan, RoleId role, const CheckOrder& order, const RoleUses& uses, Defects& defects);
void check_work(const Plan& plan, bool stale_weights_allowed, Defects& defects);
void check_capacity(const Plan& plan, const CheckPlanOptions& options, Defects& defects);

}  // namespace foreshard
