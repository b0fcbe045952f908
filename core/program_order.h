// The order that a plan gives to the instructions of one role: streams, `after`, events. A step is one instruction of
// one action of one run; steps are numbered in issue order.
//
// Only the role's own streams and events are looked at. What ranks learn from each other through exchanges and
// collectives could order more, but memory is local, and an executor can rely on local order alone.
#pragma once

#include <cstdint>
#include <vector>

#include "core/plan.h"

namespace foreshard {

struct Step {
  std::int32_t action = 0, instruction = 0, stream = 0;
  std::int32_t position = 0;  // on its stream
};

struct UnboundWait {  // no record of the event in any run
  std::int32_t action = 0, instruction = 0;
  EventUse wait = {};
};

inline std::int32_t value_of(const Slot& slot, const Action& action) {
  if (const auto* number = std::get_if<std::int32_t>(&slot.which)) return *number;
  return action.args[std::get<ParamId>(slot.which).index()];
}

class ProgramOrder {
 public:
  // `runs` runs after each other, without a barrier in between. Indices of the plan have to be in range.
  ProgramOrder(const Plan& plan, RoleId role, int runs = 1);

  int count() const { return static_cast<int>(steps_.size()); }
  int streams() const { return streams_; }
  const Step& step(int s) const { return steps_[static_cast<std::size_t>(s)]; }
  // How many steps of each stream have to end before step `s` may begin, in [stream].
  const std::int32_t* ended_before(int s) const {
    return clocks_.data() + static_cast<std::size_t>(s) * static_cast<std::size_t>(streams_);
  }
  // Does `a` end before `b` begins in every execution?
  bool before(int a, int b) const { return ended_before(b)[step(a).stream] > step(a).position; }
  const std::vector<UnboundWait>& unbound() const { return unbound_; }

 private:
  void add(const Plan& plan, const Role& role, std::int32_t action);
  void depend(std::int32_t on);

  int streams_ = 0;
  std::vector<Step> steps_;
  std::vector<std::int32_t> clocks_;
  std::vector<std::int32_t> last_of_stream_, last_record_, event_base_;
  std::vector<UnboundWait> unbound_;
  bool first_run_ = true;
};

}  // namespace foreshard
