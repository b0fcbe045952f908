// Program: what the issue order of a role decides independently of time (core/plan/plan.h, "Meaning"). Every `wait` is bound to the
// `record` that it waits for. The uses of every meeting point (one side of an exchange, or a group) are numbered, so that both sides agree
// which use meets which, on whatever streams they run. Simulator and executors use these results; only `check_plan` computes its own, as
// an oracle.
//
// Each run of the plan repeats the program. In run r, a wait bound to a Position with `runs_back` 1 waits for run r - 1 (in the first run
// it does not wait), and use n of a meeting point has the number r * uses_per_run + n. Where runs overlap (Role::ahead), the bindings are
// those in the middle of many runs: what a wait is bound to may be of a later run, and is not waited for where that run is not begun.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "core/plan/plan.h"

namespace foreshard {

// A place where ranks synchronise, relative to the rank. Peers are reduced: a shift is 0 to size - 1, so that +1 and -1 on an axis of size
// 2 are the same peer.
struct MeetingPoint {
  enum class Kind : std::uint8_t { Send, Receive, Collective };
  Kind kind = Kind::Send;
  Peer peer = {};         // Send, Receive: the other end
  std::int32_t tag = -1;  // Send, Receive: the number of the tag in the plan
  GroupId group = {};     // Collective
  bool operator==(const MeetingPoint&) const = default;
};
Peer reduced(const Plan& plan, Peer peer);

// A use of a meeting point by an instruction of a segment.
struct MeetingUse {
  std::int32_t point = -1;  // index of MeetingPoints::points; -1: no use
  std::int32_t at = 0;      // index of the point in SegmentMeetings::points
  std::int32_t nth = 0;     // number of earlier uses of the point in the segment, in issue order
};

struct SegmentMeetings {
  // [instruction]: number of waits of earlier instructions; the last entry counts all.
  std::vector<std::int32_t> first_wait = {};
  std::vector<MeetingUse> meeting = {}, from = {};     // [instruction]: the send side or the group; the receive side
  std::vector<std::int32_t> points = {}, counts = {};  // meeting points that the segment uses, and number of uses of each
};

struct MeetingPoints {
  std::vector<MeetingPoint> points = {};
  std::vector<SegmentMeetings> segments = {};  // [segment]
};
// All indices of the plan have to be in range (core/plan/plan_indices.h), here and below.
MeetingPoints find_meeting_points(const Plan& plan);

// An instruction of the same rank.
struct Position {
  // Action -1: the event is never recorded, so there is nothing to wait for.
  std::int32_t action = -1, instruction = -1, stream = -1;
  std::int32_t runs_back = 0;  // 1: of the previous run; -1: of the next one, of which it was issued ahead
  bool operator==(const Position&) const = default;
};

// The order in which a role issues its actions. Pass r is what it issues from the first action of run r that was not issued ahead up to the
// last one of run r: the rest of run r, with the first actions of run r + 1 among it. Before pass 0 it issues the first actions of run 0.
struct IssueOrder {
  struct Issued {
    std::int32_t action = 0;
    bool ahead = false;  // of the next run
  };
  std::vector<Issued> pass = {};
  std::vector<std::int32_t> place = {};  // [action]: its place in a pass
  std::int32_t ahead = 0;                // number of actions that are issued ahead: the first ones of a run

  // A number that grows in the order of issue, over all runs.
  std::int64_t sequence(std::int32_t action, std::int32_t run) const {
    return (std::int64_t{run} - (action < ahead ? 1 : 0)) * static_cast<std::int64_t>(pass.size()) +
           place[static_cast<std::size_t>(action)];
  }
};
IssueOrder issue_order(const Role& role);
// Calls visit(action, run) for all actions of runs 0 .. runs - 1, in the order of issue.
template <class Visit>
void each_issued(const IssueOrder& order, int runs, Visit visit) {
  for (std::int32_t a = 0; a < order.ahead && runs > 0; ++a) visit(a, 0);
  for (int run = 0; run < runs; ++run)
    for (const IssueOrder::Issued& issued : order.pass)
      if (!issued.ahead || run + 1 < runs) visit(issued.action, run + (issued.ahead ? 1 : 0));
}

struct RoleProgram {
  struct Issue {  // of an action
    SegmentId segment = {};
    std::int32_t first_binding = 0;  // index of `bindings`; add the position of the wait in the segment
    std::int32_t first_base = 0;     // index of `bases`; add the position of the point in SegmentMeetings::points
  };
  IssueOrder order = {};
  std::vector<Issue> issues = {};       // [action]
  std::vector<Position> bindings = {};  // of each wait of each action, the record that it waits for
  // Of each point that an action uses, the number of its uses by earlier actions of the run.
  std::vector<std::int32_t> bases = {};
  std::vector<std::int32_t> uses_per_run = {};  // [meeting point]
  std::vector<std::int32_t> times_issued = {};  // [segment], per run

  // The records that this instruction of this action waits for. `segment`: that of the action.
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
