// A whole iteration in time order: one rank of every role, all of them at once. Transfers and collectives of several roles begin when
// both ends are there, traffic that is under way at once shares the links it meets on (max-min), and kernels of communication slow the
// computes beside them, those of a receive as well. So it is what the simulator plays, without its network. Internal to strategy/.
#pragma once

#include "core/plan.h"
#include "strategy/estimate_alone.h"

namespace foreshard {

struct Iteration {
  double end = 0;            // seconds
  double last_backward = 0;  // of all roles
  double compute = 0,
         communication = 0;  // on the compute stream of the busiest role, in forwards and backwards; transfers aside
};

// Throws Error when the ranks wait for each other.
Iteration play_iteration(const Plan& plan, AloneTimes& alone);

}  // namespace foreshard
