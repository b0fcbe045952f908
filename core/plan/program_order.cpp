#include "core/plan/program_order.h"

namespace foreshard {

ProgramOrder::ProgramOrder(const Plan& plan, const MeetingPoints& meetings, RoleId role_id, int runs)
    : clocks_(plan.roles[role_id.index()].streams.size()) {
  const Role& role = plan.roles[role_id.index()];
  const RoleProgram program = read_role(plan, meetings, role_id);
  const std::size_t actions = role.actions.size();
  std::size_t steps = 0;
  for (const Action& action : role.actions) steps += plan.segments[action.segment.index()].instructions.size();
  clocks_.reserve(steps * static_cast<std::size_t>(runs));
  steps_.reserve(steps * static_cast<std::size_t>(runs));
  std::vector<std::int32_t> first(actions * static_cast<std::size_t>(runs),
                                  -1);  // [run][action]: its first step; -1: not issued yet
  const auto first_of = [&](std::int32_t action, std::int32_t run) -> std::int32_t& {
    return first[static_cast<std::size_t>(run) * actions + static_cast<std::size_t>(action)];
  };
  each_issued(program.order, runs, [&](std::int32_t action, std::int32_t run) {
    const std::size_t s = role.actions[static_cast<std::size_t>(action)].segment.index();
    const std::int32_t begin = first_of(action, run) = count();
    std::int32_t index = 0;
    for (const Instruction& instruction : plan.segments[s].instructions) {
      steps_.push_back({action, index});
      clocks_.add(instruction.stream.value);
      for (const std::int32_t earlier : instruction.after) clocks_.depend(begin + earlier);
      for (const Position& on : program.waits(action, index, meetings.segments[s])) {
        const std::int32_t of_run = run - on.runs_back;
        if (on.action < 0 || of_run < 0 || of_run >= runs) continue;
        const std::int32_t record = first_of(on.action, of_run);
        if (record >= 0) clocks_.depend(record + on.instruction);
      }
      ++index;
    }
  });
}

}  // namespace foreshard
