// Happens-before of the instructions of one role, from streams, `after` and events. A step is one instruction of one action of one run;
// steps are numbered in issue order.
//
// Only the role's own streams and events count. Exchanges and collectives with other ranks could order more steps, but memory is local to a
// rank, and its executor relies on local order only.
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
  // Orders `runs` consecutive runs of the plan without a barrier between them. `meetings`: find_meeting_points(plan). Indices of the plan
  // have to be in range.
  ProgramOrder(const Plan& plan, const MeetingPoints& meetings, RoleId role, int runs = 1);

  int count() const { return clocks_.count(); }
  const ProgramStep& step(int s) const { return steps_[static_cast<std::size_t>(s)]; }
  const StreamClocks& clocks() const { return clocks_; }

 private:
  StreamClocks clocks_;
  std::vector<ProgramStep> steps_ = {};
};

}  // namespace foreshard
