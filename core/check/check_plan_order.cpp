#include "core/check/check_plan_order.h"

#include <algorithm>

namespace foreshard {

CheckOrder::CheckOrder(const Plan& plan, RoleId role_id, int runs) : clocks_(plan.roles[role_id.index()].streams.size()) {
  const Role& role = plan.roles[role_id.index()];
  for (const Event& event : role.events) newest_.emplace_back(static_cast<std::size_t>(event.slots), -1);
  for (int run = 0; run < runs; ++run, first_run_ = false)
    for (std::size_t a = 0; a < role.actions.size(); ++a) add(plan, role, static_cast<std::int32_t>(a));
  // a wait of the first run is carried over when the event is recorded later
  std::erase_if(unbound_,
                [&](const UnboundWait& u) { return newest(u.wait, role.actions[static_cast<std::size_t>(u.action)]) >= 0; });
}

std::int32_t& CheckOrder::newest(const EventUse& use, const Action& action) {
  const auto* fixed = std::get_if<std::int32_t>(&use.slot.which);
  const std::int32_t slot = fixed != nullptr ? *fixed : action.args[std::get<ParamId>(use.slot.which).index()];
  return newest_[use.event.index()][static_cast<std::size_t>(slot)];
}

void CheckOrder::add(const Plan& plan, const Role& role, std::int32_t action_index) {
  const Action& action = role.actions[static_cast<std::size_t>(action_index)];
  const auto first = static_cast<std::int32_t>(steps_.size());
  std::int32_t index = 0;
  for (const Instruction& instruction : plan.segments[action.segment.index()].instructions) {
    steps_.push_back({action_index, index});
    const std::int32_t here = clocks_.add(instruction.stream.value);
    for (const std::int32_t earlier : instruction.after) clocks_.depend(first + earlier);
    for (const EventUse& wait : instruction.waits) {
      if (const std::int32_t record = newest(wait, action); record >= 0)
        clocks_.depend(record);
      else if (first_run_)
        unbound_.push_back({action_index, index, wait});
    }
    for (const EventUse& record : instruction.records) newest(record, action) = here;
    ++index;
  }
}

}  // namespace foreshard
