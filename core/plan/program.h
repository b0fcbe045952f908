// Program: what the order of issue decides about a role before any time passes (core/plan/plan.h, "Meaning"). Every `wait` is bound to
// the `record` that it waits for, and the uses of every meeting point (a side of an exchange, a group) are numbered, so that
// both sides agree which use meets which, on whatever streams they run. Readers of a plan ask here; only `check_plan` reads
// waits and meetings by itself, because it is the oracle.
//
// A run of the plan repeats the program: in run r the wait of a Position with `runs_back` 1 is for run r - 1 (satisfied in the
// first run), and use n of a meeting point is number r * uses_per_run + n.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "core/plan/plan.h"

namespace foreshard {

// Where ranks meet, as every rank of a role sees it. Peers are reduced: a shift is 0 to size - 1, so +1 and -1 on an axis of two
// are one peer.
struct MeetingPoint {
  enum class Kind : std::uint8_t { Send, Receive, Collective };
  Kind kind = Kind::Send;
  Peer peer = {};         // of an exchange: the other end ...
  std::int32_t tag = -1;  // ... and the number of its tag in the plan
  GroupId group = {};     // of a collective
  bool operator==(const MeetingPoint&) const = default;
};
Peer reduced(const Plan& plan, Peer peer);

// The n-th use of a meeting point in its segment, n counted in issue order.
struct MeetingUse {
  std::int32_t point = -1;  // MeetingPoints::points
  std::int32_t at = 0;      // position of the point in SegmentMeetings::points
  std::int32_t nth = 0;
};

struct SegmentMeetings {
  std::vector<std::int32_t> first_wait = {};           // [instruction]: number of waits before it; one more than instructions
  std::vector<MeetingUse> meeting = {}, from = {};     // [instruction]: send side or group; receive side
  std::vector<std::int32_t> points = {}, counts = {};  // meeting points that it uses, and how often
};

struct MeetingPoints {
  std::vector<MeetingPoint> points = {};
  std::vector<SegmentMeetings> segments = {};  // [segment]
};
// Indices of the plan have to be in range, as for everything below.
MeetingPoints find_meeting_points(const Plan& plan);

// An instruction of an action of the same rank.
struct Position {
  std::int32_t action = -1, instruction = -1, stream = -1;  // action -1: nothing to wait for, the event is never recorded
  std::int32_t runs_back = 0;                               // 1: of the previous run
  bool operator==(const Position&) const = default;
};

struct RoleProgram {
  struct Issue {
    SegmentId segment = {};
    std::int32_t first_binding = 0;  // + position of the wait in the segment
    std::int32_t first_base = 0;     // + position of the point in SegmentMeetings::points
  };
  std::vector<Issue> issues = {};               // [action]
  std::vector<Position> bindings = {};          // what each wait waits for
  std::vector<std::int32_t> bases = {};         // earlier uses of each meeting point in the run
  std::vector<std::int32_t> uses_per_run = {};  // [meeting point]
  std::vector<std::int32_t> times_issued = {};  // [segment], per run

  // What the instruction of this action waits for.
  std::span<const Position> waits(std::int32_t action, std::int32_t instruction, const SegmentMeetings& segment) const {
    const auto at = static_cast<std::size_t>(instruction);
    const auto first =
        static_cast<std::size_t>(issues[static_cast<std::size_t>(action)].first_binding + segment.first_wait[at]);
    return {bindings.data() + first, static_cast<std::size_t>(segment.first_wait[at + 1] - segment.first_wait[at])};
  }
  // The number of this use among all uses of its meeting point in the run.
  std::int32_t number(std::int32_t action, const MeetingUse& use) const {
    return bases[static_cast<std::size_t>(issues[static_cast<std::size_t>(action)].first_base + use.at)] + use.nth;
  }
};
RoleProgram read_role(const Plan& plan, const MeetingPoints& meetings, RoleId role);

}  // namespace foreshard
