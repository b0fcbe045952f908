#include "core/plan/program.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <tuple>

#include "core/check/check_plan_rules.h"
#include "core/plan/program_order.h"
#include "tests/core/support_plan.h"

namespace foreshard::program_test {
namespace {

// One use of a meeting point by one role in one run: (role, point, number) -> step.
using Uses = std::map<std::tuple<std::int32_t, std::int32_t, std::int32_t>, std::int32_t>;

Uses uses_of(const Plan& plan, const MeetingPoints& meetings) {
  Uses uses;
  for (std::size_t r = 0; r < plan.roles.size(); ++r) {
    const auto role = static_cast<std::int32_t>(r);
    const RoleProgram program = read_role(plan, meetings, {role});
    std::int32_t step = 0;
    for (std::size_t a = 0; a < plan.roles[r].actions.size(); ++a) {
      const SegmentMeetings& segment = meetings.segments[plan.roles[r].actions[a].segment.index()];
      for (std::size_t i = 0; i < segment.meeting.size(); ++i, ++step)
        for (const MeetingUse* use : {&segment.meeting[i], &segment.from[i]})
          if (use->point >= 0) uses[{role, use->point, program.number(static_cast<std::int32_t>(a), *use)}] = step;
    }
  }
  return uses;
}

std::vector<std::int32_t> wide_axes(const Plan& plan, std::int32_t role) {
  std::vector<std::int32_t> axes;
  for (const AxisId axis : plan.roles[static_cast<std::size_t>(role)].axes)
    if (plan.axes[axis.index()].size > 1) axes.push_back(axis.value);
  std::sort(axes.begin(), axes.end());
  return axes;
}

// Every rank of the role has the peer.
bool exists(const Plan& plan, std::int32_t role, const Peer& peer) {
  const std::int32_t there = role + peer.role_shift;
  if (there < 0 || there >= static_cast<std::int32_t>(plan.roles.size())) return false;
  const std::vector<std::int32_t> axes = wide_axes(plan, role);
  return axes == wide_axes(plan, there) &&
         std::ranges::all_of(peer.axes, [&](AxisId axis) { return std::binary_search(axes.begin(), axes.end(), axis.value); });
}

// The exchanges of the plan as the program numbers them: the n-th send of a role to a peer is the n-th receive there.
CheckedMeetings numbered(const Plan& plan) {
  const MeetingPoints meetings = find_meeting_points(plan);
  const Uses uses = uses_of(plan, meetings);
  CheckedMeetings all;
  for (const auto& [use, step] : uses) {
    const auto& [role, number, nth] = use;
    const MeetingPoint& point = meetings.points[static_cast<std::size_t>(number)];
    if (point.kind == MeetingPoint::Kind::Collective) all.calls.push_back({point.group, {role}, step, nth});
    if (point.kind != MeetingPoint::Kind::Send || !exists(plan, role, point.peer)) continue;
    const Peer back = reduced(plan, {-point.peer.role_shift, point.peer.axes, -point.peer.shift});
    const auto other = std::find(meetings.points.begin(), meetings.points.end(),
                                 MeetingPoint{MeetingPoint::Kind::Receive, back, point.tag, {}});
    if (other == meetings.points.end()) continue;
    const std::int32_t there = role + point.peer.role_shift;
    const auto receive = uses.find({there, static_cast<std::int32_t>(other - meetings.points.begin()), nth});
    if (receive != uses.end()) all.exchanges.push_back({{role}, {there}, step, receive->second});
  }
  return all;
}

}  // namespace

TEST(Program, ReadsWaitsAndMeetingsAsCheckPlanDoes) {
  std::size_t waits = 0, exchanges = 0, calls = 0;
  for (std::uint32_t seed = 0; seed < 8000; ++seed) {
    const Plan plan = seed == 0 ? small_plan() : random_plan(seed);
    for (std::size_t r = 0; r < plan.roles.size(); ++r) {
      const RoleId role{static_cast<std::int32_t>(r)};
      const ProgramOrder ours(plan, find_meeting_points(plan), role, 3);
      const CheckOrder theirs(plan, role, 3);
      ASSERT_EQ(ours.count(), theirs.count());
      for (int s = 0; s < ours.count(); ++s)
        for (int stream = 0; stream < theirs.streams(); ++stream, ++waits)
          ASSERT_EQ(ours.clocks().ended_before(s)[stream], theirs.ended_before(s)[stream]) << seed << ", step " << s;
    }
    CheckedMeetings ours = numbered(plan), theirs = checked_meetings(plan);
    std::sort(ours.exchanges.begin(), ours.exchanges.end());
    std::sort(theirs.exchanges.begin(), theirs.exchanges.end());
    std::sort(ours.calls.begin(), ours.calls.end());
    std::sort(theirs.calls.begin(), theirs.calls.end());
    ASSERT_EQ(ours.exchanges, theirs.exchanges) << seed;
    ASSERT_EQ(ours.calls, theirs.calls) << seed;
    exchanges += ours.exchanges.size(), calls += ours.calls.size();
  }
  EXPECT_GT(waits, 100000U);
  EXPECT_GT(exchanges, 1000U);
  EXPECT_GT(calls, 1000U);
}

// Two of six actions are issued ahead: 0 1 | 2 3 0' 4 1' 5 | 2' 3' 0'' 4' 1'' 5' | 2'' 3'' 4'' 5''.
TEST(Program, FirstActionsAreIssuedAmongTheLastOnesOfTheRunBefore) {
  Role role;
  role.actions.resize(6);
  role.ahead = {3, 4};
  const IssueOrder order = issue_order(role);
  std::vector<std::pair<int, int>> issued;
  std::int64_t last = order.sequence(0, 0) - 1;
  each_issued(order, 3, [&](std::int32_t action, std::int32_t run) {
    issued.emplace_back(action, run);
    EXPECT_GT(order.sequence(action, run), last);
    last = order.sequence(action, run);
  });
  EXPECT_EQ(issued, (std::vector<std::pair<int, int>>{{0, 0},
                                                      {1, 0},
                                                      {2, 0},
                                                      {3, 0},
                                                      {0, 1},
                                                      {4, 0},
                                                      {1, 1},
                                                      {5, 0},
                                                      {2, 1},
                                                      {3, 1},
                                                      {0, 2},
                                                      {4, 1},
                                                      {1, 2},
                                                      {5, 1},
                                                      {2, 2},
                                                      {3, 2},
                                                      {4, 2},
                                                      {5, 2}}));
  role.ahead.clear();
  issued.clear();
  each_issued(issue_order(role), 2, [&](std::int32_t action, std::int32_t run) { issued.emplace_back(action, run); });
  EXPECT_EQ(issued.size(), 12U);
  EXPECT_TRUE(std::ranges::is_sorted(issued, {}, [](const auto& each) { return std::pair(each.second, each.first); }));
}

TEST(Program, AWaitAtTheStartOfARunIsForTheLastRecordOfTheRunBefore) {
  Plan plan = small_plan();
  const MeetingPoints meetings = find_meeting_points(plan);
  const RoleProgram program = read_role(plan, meetings, RoleId{0});
  std::size_t carried = 0, bound = 0;
  for (const Position& on : program.bindings) (on.runs_back > 0 ? carried : bound) += on.action >= 0 ? 1U : 0U;
  EXPECT_GT(carried, 0U);
  EXPECT_GT(bound, 0U);
}

}  // namespace foreshard::program_test
