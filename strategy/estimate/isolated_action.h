// How long an action of a plan takes by itself: its streams run side by side, each in issue order, with isolated times of communication.
// Internal to strategy/.
#pragma once

#include <vector>

#include "core/plan/plan.h"
#include "strategy/estimate/isolated_times.h"

namespace foreshard {

// All in seconds.
struct IsolatedAction {
  // Until the compute stream is done, with its waits for other streams, or as long as the busiest other stream is busy: so long at least
  // pass between two such actions in a row.
  double whole = 0;
  double compute = 0;  // computes of the compute stream
  double send = 0;     // the transfer to the next or the previous stage, which is in no other number
  // What neither computes nor is hidden behind computes: communication between operators.
  double communication() const { return whole - compute; }
  std::vector<double> ends = {};  // [instruction]: its end after the begin of the action
};

// `action`: of the role; -1: none, all 0. Transfers between stages take no time here, and records of earlier actions are there at once.
IsolatedAction isolated_action(const Plan& plan, IsolatedTimes& alone, RoleId role, int action);

}  // namespace foreshard
