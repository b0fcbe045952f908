#include "core/check/check_plan_order.h"

#include <algorithm>

namespace foreshard {

CheckOrder::CheckOrder(const Plan& plan, RoleId role_id, int runs) : clocks_(plan.roles[role_id.index()].streams.size()) {
  const Role& role = plan.roles[role_id.index()];
  for (const Event& event : role.events) newest_.emplace_back(static_cast<std::size_t>(event.slots), Newest{});
  const auto ahead = static_cast<std::int32_t>(role.ahead.size()), actions = static_cast<std::int32_t>(role.actions.size());
  for (int run = ahead > 0 ? -1 : 0; run < runs; ++run) {  // before the first run only what is issued ahead
    std::int32_t next = 0;
    for (std::int32_t a = ahead; a < actions; ++a) {
      run < 0 ? skip(plan, role, a) : add(plan, role, a, run);
      for (; next < ahead && role.ahead[static_cast<std::size_t>(next)] == a; ++next)
        run + 1 < runs ? add(plan, role, next, run + 1) : skip(plan, role, next);
    }
    if (run >= 0) ends_.push_back(count());
  }
  // a wait of the first run is carried over when the event is recorded later
  std::erase_if(unbound_, [&](const UnboundWait& u) {
    return newest(u.wait, role.actions[static_cast<std::size_t>(u.action)]).recorded;
  });
}

CheckOrder::Newest& CheckOrder::newest(const EventUse& use, const Action& action) {
  const auto* fixed = std::get_if<std::int32_t>(&use.slot.which);
  const std::int32_t slot = fixed != nullptr ? *fixed : action.args[std::get<ParamId>(use.slot.which).index()];
  return newest_[use.event.index()][static_cast<std::size_t>(slot)];
}

// In the middle of many runs waits would be bound to its records, so they have nothing to wait for here.
void CheckOrder::skip(const Plan& plan, const Role& role, std::int32_t action_index) {
  const Action& action = role.actions[static_cast<std::size_t>(action_index)];
  for (const Instruction& instruction : plan.segments[action.segment.index()].instructions)
    for (const EventUse& record : instruction.records) newest(record, action).step = -1;
}

void CheckOrder::add(const Plan& plan, const Role& role, std::int32_t action_index, std::int32_t run) {
  const Action& action = role.actions[static_cast<std::size_t>(action_index)];
  const auto first = static_cast<std::int32_t>(steps_.size());
  std::int32_t index = 0;
  for (const Instruction& instruction : plan.segments[action.segment.index()].instructions) {
    steps_.push_back({action_index, index, run});
    const std::int32_t here = clocks_.add(instruction.stream.value);
    for (const std::int32_t earlier : instruction.after) clocks_.depend(first + earlier);
    for (const EventUse& wait : instruction.waits) {
      if (const std::int32_t record = newest(wait, action).step; record >= 0)
        clocks_.depend(record);
      else if (run == 0)
        unbound_.push_back({action_index, index, wait});
    }
    for (const EventUse& record : instruction.records) newest(record, action) = {here, true};
    ++index;
  }
}

}  // namespace foreshard
