// The order that a plan gives to the instructions of one role: streams, `after`, events. A step is one instruction of
// one action of one run; steps are numbered in issue order.
//
// Only the role's own streams and events are looked at. What ranks learn from each other through exchanges and
// collectives could order more, but memory is local, and an executor can rely on local order alone.
#pragma once

#include <cstdint>
#include <vector>

#include "core/plan/program.h"
#include "core/plan/stream_clocks.h"

namespace foreshard {

struct ProgramStep {
  std::int32_t action = 0, instruction = 0;
};

class ProgramOrder {
 public:
  // `runs` runs after each other, without a barrier in between. Indices of the plan have to be in range.
  ProgramOrder(const Plan& plan, RoleId role, int runs = 1);

  int count() const { return clocks_.count(); }
  const ProgramStep& step(int s) const { return steps_[static_cast<std::size_t>(s)]; }
  const StreamClocks& clocks() const { return clocks_; }

 private:
  StreamClocks clocks_;
  std::vector<ProgramStep> steps_ = {};
};

}  // namespace foreshard
