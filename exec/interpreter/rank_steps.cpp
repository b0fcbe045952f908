#include "exec/interpreter/rank_steps.h"

#include <string>

#include "core/base/error.h"
#include "core/plan/program.h"

namespace foreshard {

namespace {

class StepList {
 public:
  StepList(const Plan& plan, const Ranks& ranks, RankId rank)
      : plan_(plan),
        ranks_(ranks),
        rank_(rank),
        role_(plan.roles[ranks.role(rank).index()]),
        meetings_(find_meeting_points(plan)),
        program_(read_role(plan, meetings_, ranks.role(rank))) {}

  std::vector<RankStep> build() {
    int steps = 0;
    for (const Action& action : role_.actions) {
      first_of_action_.push_back(steps);
      steps += static_cast<int>(plan_.segments[action.segment.index()].instructions.size());
    }
    steps_.reserve(static_cast<std::size_t>(steps));
    for (std::size_t a = 0; a < role_.actions.size(); ++a) {
      const Segment& segment = plan_.segments[role_.actions[a].segment.index()];
      for (std::size_t i = 0; i < segment.instructions.size(); ++i)
        add(static_cast<std::int32_t>(a), static_cast<std::int32_t>(i), segment.instructions[i]);
    }
    return std::move(steps_);
  }

 private:
  void add(std::int32_t a, std::int32_t i, const Instruction& instruction) {
    const SegmentMeetings& segment = meetings_.segments[role_.actions[static_cast<std::size_t>(a)].segment.index()];
    RankStep step{.action = a, .instruction = i, .stream = instruction.stream};
    for (const std::int32_t earlier : instruction.after) depend(step, first_of_action_[static_cast<std::size_t>(a)] + earlier);
    for (const Position& on : program_.waits(a, i, segment)) {
      if (on.action < 0) continue;
      const int record = first_of_action_[static_cast<std::size_t>(on.action)] + on.instruction;
      if (on.runs_back != 0)
        step.after_previous.push_back(record);
      else
        depend(step, record);
    }
    const MeetingUse &meeting = segment.meeting[static_cast<std::size_t>(i)], &from = segment.from[static_cast<std::size_t>(i)];
    if (const auto* collective = std::get_if<Collective>(&instruction.what)) {
      step.members = ranks_.members(collective->group, rank_);
      step.sequence = program_.number(a, meeting);
    } else if (const auto* exchange = std::get_if<Exchange>(&instruction.what)) {
      if (exchange->to) step.to = peer(*exchange->to, instruction), step.sent = program_.number(a, meeting);
      if (exchange->from) step.from = peer(*exchange->from, instruction), step.received = program_.number(a, from);
    }
    steps_.push_back(std::move(step));
  }

  void depend(RankStep& step, int on) const {
    if (steps_[static_cast<std::size_t>(on)].stream != step.stream) step.after.push_back(on);
  }

  RankId peer(const Peer& peer, const Instruction& instruction) const {
    const RankId other = ranks_.peer(rank_, peer);
    if (!other.valid())
      throw Error("plan", "rank " + std::to_string(rank_.value) + ", " + instruction.name, "a peer that does not exist",
                  "a role and coordinate of the plan");
    return other;
  }

  const Plan& plan_;
  const Ranks& ranks_;
  RankId rank_;
  const Role& role_;
  MeetingPoints meetings_;
  RoleProgram program_;
  std::vector<int> first_of_action_ = {};
  std::vector<RankStep> steps_ = {};
};

}  // namespace

std::vector<RankStep> steps_of(const Plan& plan, const Ranks& ranks, RankId rank) {
  return StepList(plan, ranks, rank).build();
}

}  // namespace foreshard
