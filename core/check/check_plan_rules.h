// The parts of check_plan. Internal.
#pragma once

#include <cstdint>
#include <set>
#include <string>
#include <tuple>
#include <vector>

#include "core/check/check_plan.h"
#include "core/check/check_plan_order.h"

namespace foreshard {

using AxisSet = std::uint64_t;  // bit per axis; axes past 63 are not looked at, the last bit is free
inline constexpr std::size_t kMostAxes = 63;
constexpr AxisSet bit(AxisId axis) { return axis.index() < kMostAxes ? AxisSet{1} << axis.index() : 0; }

class Defects {
 public:
  Defects(const Plan& plan, int most) : plan_(&plan), most_(static_cast<std::size_t>(most < 0 ? 0 : most)) {}

  bool full() const { return found_.size() >= most_; }
  bool empty() const { return found_.empty(); }
  void add(const char* rule, std::string where, std::string what);
  // The same rule on the same instruction of the same segment and role is told once.
  void add(const char* rule, RoleId role, std::int32_t action, std::int32_t instruction, std::string what);
  std::vector<PlanDefect> take() { return std::move(found_); }

 private:
  const Plan* plan_;
  std::size_t most_;
  std::vector<PlanDefect> found_;
  std::set<std::tuple<std::string, std::int32_t, std::int32_t, std::int32_t>> told_;
};

// The uses of one role, cut at all borders that appear in the plan: two uses share bytes exactly if they share a piece.
class RoleUses {
 public:
  struct Access {
    BufferId buffer = {};
    Slot slot = {};
    std::int32_t first = 0, pieces = 0;  // of the slot
    bool write = false;
  };

  RoleUses(const Plan& plan, const Role& role);

  const std::vector<Access>& of(SegmentId segment, std::int32_t instruction) const {  // reads, then writes
    return accesses_[segment.index()][static_cast<std::size_t>(instruction)];
  }
  std::size_t block(BufferId buffer, std::int32_t slot) const {
    return blocks_[buffer.index()] + static_cast<std::size_t>(slot);
  }
  std::size_t piece(BufferId buffer, std::int32_t slot) const {  // the first of the slot
    return pieces_[buffer.index()] + static_cast<std::size_t>(slot) * (cuts_[buffer.index()].size() - 1);
  }
  std::size_t blocks() const { return block_count_; }
  std::size_t pieces() const { return piece_count_; }
  const std::vector<std::int64_t>& cuts(BufferId buffer) const { return cuts_[buffer.index()]; }  // 0 .. bytes

 private:
  void cut(const Plan& plan, const Role& role, const std::vector<char>& played);

  std::vector<std::vector<std::vector<Access>>> accesses_;  // [segment][instruction]
  std::vector<std::vector<std::int64_t>> cuts_;             // [buffer]
  std::vector<std::size_t> blocks_, pieces_;                // [buffer]: the first one
  std::size_t block_count_ = 0, piece_count_ = 0;
};

std::string block_name(const Role& role, BufferId buffer, std::int32_t slot);

// Who meets whom, as check_meetings reads it. Steps are those of one run of the role.
struct CheckedMeetings {
  struct Exchange {
    RoleId from = {}, to = {};
    std::int32_t send = 0, receive = 0;  // steps
    auto operator<=>(const Exchange&) const = default;
  };
  struct Call {
    GroupId group = {};
    RoleId role = {};
    std::int32_t step = 0, number = 0;
    auto operator<=>(const Call&) const = default;
  };
  std::vector<Exchange> exchanges = {};
  std::vector<Call> calls = {};
};
CheckedMeetings checked_meetings(const Plan& plan);

void check_meetings(const Plan& plan, const std::vector<CheckOrder>& orders, Defects& defects);
void check_lives(const Plan& plan, RoleId role, const CheckOrder& two_runs, const RoleUses& uses, Defects& defects);
void check_shards(const Plan& plan, RoleId role, Defects& defects);
void check_context(const Plan& plan, RoleId role, Defects& defects);
void check_gradients(const Plan& plan, RoleId role, const RoleUses& uses, Defects& defects);
void check_partial_sums(const Plan& plan, RoleId role, const RoleUses& uses, Defects& defects);
void check_work(const Plan& plan, bool stale_weights_allowed, Defects& defects);
void check_capacity(const Plan& plan, const CheckPlanOptions& options, Defects& defects);

}  // namespace foreshard
