#include "core/program_order.h"

#include <algorithm>

namespace foreshard {

ProgramOrder::ProgramOrder(const Plan& plan, RoleId role_id, int runs) {
  const Role& role = plan.roles[role_id.index()];
  streams_ = static_cast<int>(role.streams.size());
  last_of_stream_.assign(role.streams.size(), -1);
  std::int32_t slots = 0;
  for (const Event& event : role.events) {
    event_base_.push_back(slots);
    slots += event.slots;
  }
  last_record_.assign(static_cast<std::size_t>(slots), -1);
  std::size_t steps = 0;
  for (const Action& action : role.actions) steps += plan.segments[action.segment.index()].instructions.size();
  steps_.reserve(steps * static_cast<std::size_t>(runs));
  clocks_.reserve(steps * static_cast<std::size_t>(runs) * role.streams.size());
  for (int run = 0; run < runs; ++run, first_run_ = false)
    for (std::size_t a = 0; a < role.actions.size(); ++a) add(plan, role, static_cast<std::int32_t>(a));
  // a wait of the first run is carried over when the event is recorded later
  std::erase_if(unbound_, [&](const UnboundWait& u) {
    const std::int32_t slot = value_of(u.wait.slot, role.actions[static_cast<std::size_t>(u.action)]);
    return last_record_[static_cast<std::size_t>(event_base_[u.wait.event.index()] + slot)] >= 0;
  });
}

void ProgramOrder::add(const Plan& plan, const Role& role, std::int32_t action_index) {
  const Action& action = role.actions[static_cast<std::size_t>(action_index)];
  const auto first = static_cast<std::int32_t>(steps_.size());
  const auto event = [&](const EventUse& use) -> std::int32_t& {
    return last_record_[static_cast<std::size_t>(event_base_[use.event.index()] + value_of(use.slot, action))];
  };
  std::int32_t index = 0;
  for (const Instruction& instruction : plan.segments[action.segment.index()].instructions) {
    std::int32_t& last = last_of_stream_[instruction.stream.index()];
    const std::int32_t position = last < 0 ? 0 : step(last).position + 1;
    const auto here = static_cast<std::int32_t>(steps_.size());
    steps_.push_back({action_index, index, instruction.stream.value, position});
    clocks_.resize(clocks_.size() + static_cast<std::size_t>(streams_), 0);
    if (last >= 0) depend(last);
    for (const std::int32_t earlier : instruction.after) depend(first + earlier);
    for (const EventUse& wait : instruction.waits) {
      if (event(wait) >= 0)
        depend(event(wait));
      else if (first_run_)
        unbound_.push_back({action_index, index, wait});
    }
    for (const EventUse& record : instruction.records) event(record) = here;
    last = here;
    ++index;
  }
}

// The newest step begins after the end of `on`.
void ProgramOrder::depend(std::int32_t on) {
  std::int32_t* clock = clocks_.data() + clocks_.size() - streams_;
  const std::int32_t* other = ended_before(on);
  for (int s = 0; s < streams_; ++s) clock[s] = std::max(clock[s], other[s]);
  std::int32_t& own = clock[step(on).stream];
  own = std::max(own, step(on).position + 1);
}

}  // namespace foreshard
