// Happens-before of the instructions of one role, as check_plan computes it. check_plan is an oracle, so this binds waits to records by
// itself and shares only the vector clocks (core/plan/stream_clocks.h) with core/plan/program.h. Internal to core/check.
#pragma once

#include <cstdint>
#include <vector>

#include "core/plan/plan.h"
#include "core/plan/stream_clocks.h"

namespace foreshard {

// One instruction of one action of one run; steps are numbered in issue order.
struct CheckStep {
  std::int32_t action = 0, instruction = 0, run = 0;
};

struct UnboundWait {  // a wait for an event slot that the role never records
  std::int32_t action = 0, instruction = 0;
  EventUse wait = {};
};

class CheckOrder {
 public:
  // Orders `runs` consecutive runs of the plan without a barrier between them. Indices of the plan have to be in range. The first actions of
  // a run may be issued ahead, while the run before ends (Role::ahead); of the last run nothing is issued ahead of a next one.
  CheckOrder(const Plan& plan, RoleId role, int runs);

  int count() const { return clocks_.count(); }  // steps of all runs
  int streams() const { return clocks_.streams(); }
  std::int32_t stream(int step) const { return clocks_.stream(step); }
  std::int32_t position(int step) const { return clocks_.position(step); }
  const CheckStep& step(int s) const { return steps_[static_cast<std::size_t>(s)]; }
  // The next two: core/plan/stream_clocks.h.
  const std::int32_t* ended_before(int step) const { return clocks_.ended_before(step); }
  bool before(int a, int b) const { return clocks_.before(a, b); }
  const StreamClocks& clocks() const { return clocks_; }
  const std::vector<UnboundWait>& unbound() const { return unbound_; }
  // The number of steps before which the role can stop between two runs: [k] is where run k may end if nothing of run k + 1 has been issued
  // but what is issued ahead. The last element counts all steps.
  const std::vector<int>& ends() const { return ends_; }

 private:
  void add(const Plan& plan, const Role& role, std::int32_t action, std::int32_t run);
  void skip(const Plan& plan, const Role& role, std::int32_t action);
  struct Newest {            // record of an event slot
    std::int32_t step = -1;  // -1: none yet, or one that is not issued here
    bool recorded = false;   // ever
  };
  Newest& newest(const EventUse& use, const Action& action);

  StreamClocks clocks_;
  std::vector<CheckStep> steps_ = {};
  std::vector<std::vector<Newest>> newest_ = {};  // [event][slot]
  std::vector<UnboundWait> unbound_ = {};
  std::vector<int> ends_ = {};
};

}  // namespace foreshard
