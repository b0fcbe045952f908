#include "core/plan/program_order.h"

namespace foreshard {

ProgramOrder::ProgramOrder(const Plan& plan, const MeetingPoints& meetings, RoleId role_id, int runs)
    : clocks_(plan.roles[role_id.index()].streams.size()) {
  const Role& role = plan.roles[role_id.index()];
  const RoleProgram program = read_role(plan, meetings, role_id);
  std::vector<std::int32_t> first_of_action;  // in a run; one more than actions
  std::int32_t steps = 0;
  for (const Action& action : role.actions) {
    first_of_action.push_back(steps);
    steps += static_cast<std::int32_t>(plan.segments[action.segment.index()].instructions.size());
  }
  clocks_.reserve(static_cast<std::size_t>(steps) * static_cast<std::size_t>(runs));
  steps_.reserve(static_cast<std::size_t>(steps) * static_cast<std::size_t>(runs));
  for (int run = 0; run < runs; ++run)
    for (std::size_t a = 0; a < role.actions.size(); ++a) {
      const std::size_t s = role.actions[a].segment.index();
      const auto action = static_cast<std::int32_t>(a);
      const std::int32_t first = run * steps + first_of_action[a];
      std::int32_t index = 0;
      for (const Instruction& instruction : plan.segments[s].instructions) {
        steps_.push_back({action, index});
        clocks_.add(instruction.stream.value);
        for (const std::int32_t earlier : instruction.after) clocks_.depend(first + earlier);
        for (const Position& on : program.waits(action, index, meetings.segments[s]))
          if (on.action >= 0 && on.runs_back <= run)
            clocks_.depend((run - on.runs_back) * steps + first_of_action[static_cast<std::size_t>(on.action)] +
                           on.instruction);
        ++index;
      }
    }
}

}  // namespace foreshard
