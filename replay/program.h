// Program: what the order of issue decides about a role before any time passes. `wait` is bound to the newest earlier
// `record` of the same event and slot, and the uses of every meeting point (a channel's send side or receive side, a
// group) are counted, so that both sides agree which use meets which, on whatever streams they run.
#pragma once

#include <cstdint>
#include <vector>

#include "replay/patterns.h"

namespace foreshard::player {

// The n-th use of a meeting point in its segment, n counted in issue order.
struct MeetingUse {
  std::int32_t key = -1;  // send_key, receive_key or group_key
  std::int32_t at = 0;    // position of the key in SegmentLayout::keys
  std::int32_t nth = 0;
};
constexpr int send_key(int channel) { return 2 * channel; }
constexpr int receive_key(int channel) { return 2 * channel + 1; }
inline int group_key(const Patterns& patterns, int group) { return 2 * static_cast<int>(patterns.channels.size()) + group; }
inline int key_count(const Plan& plan, const Patterns& patterns) {
  return group_key(patterns, static_cast<int>(plan.groups.size()));
}

struct SegmentLayout {
  std::vector<std::int32_t> first_wait = {};         // [instruction]: number of waits before it; one more than instructions
  std::vector<MeetingUse> meeting = {}, from = {};   // [instruction]: send side or group; receive side
  std::vector<std::int32_t> keys = {}, counts = {};  // meeting points that it uses, and how often
};
std::vector<SegmentLayout> lay_out(const Plan& plan, const Patterns& patterns);

// An instruction of an action of the same rank.
struct Position {
  std::int32_t action = -1, instruction = -1, stream = -1;  // action -1: before the run
};

struct RoleProgram {
  struct Issue {
    SegmentId segment = {};
    std::int32_t first_binding = 0;  // + position of the wait in the segment
    std::int32_t first_base = 0;     // + position of the key in SegmentLayout::keys
  };
  std::vector<Issue> issues = {};               // [run * actions + action]
  std::vector<Position> bindings = {};          // what each wait waits for
  std::vector<std::int32_t> bases = {};         // earlier uses of each meeting point
  std::vector<std::int32_t> times_issued = {};  // [segment]
};
// `runs` runs, one after the other: a wait of a later run may be bound to a record of an earlier one.
RoleProgram make_program(const Plan& plan, const Patterns& patterns, const std::vector<SegmentLayout>& layouts, RoleId role,
                         int runs = 1);

}  // namespace foreshard::player
