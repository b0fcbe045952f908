// The order of actions when stages have different numbers of replicas. The d replicas of a stage take the micro-batches in turn: replica r
// runs micro-batches r, r + d, r + 2d, ... This is PipeDream's 1F1B round robin (Narayanan et al. 2019), here with one optimizer step after
// all micro-batches.
//
//   stage 0, two replicas   r0  0> 2> ......... 0<< 4> 2<< ...      > forward, << backward; both take twice as long as in stage 1
//                           r1  1> 3> ............. 1<< 5> ...
//   stage 1, one replica        0> 0< 1> 1< 2> 2< ...
#pragma once

#include <vector>

#include "strategy/schedule/schedule.h"

namespace foreshard {

// The actions of one stage. Each replica numbers its micro-batches from 0, so all replicas of the stage have the same list.
struct StageTurns {
  std::vector<ScheduleOp> list = {};
  int input_slots = 0, gradient_slots = 0;  // receive buffers of a replica: for inputs, for gradients from the next stage
};

// [stage]. `replicas` [stage]: its number of replicas, which must divide `microbatches` (those of a step over all replicas). The schedule
// is GPipe or 1F1B (asserted). The lists never deadlock: docs/lowering.md, "Stages with degrees of their own".
std::vector<StageTurns> stage_turns(Schedule schedule, const std::vector<int>& replicas, int microbatches);

// The most micro-batches in flight on a replica of `stage` under 1F1B: the sum of the replicas of this stage and all later ones, divided
// by the replicas of this stage, rounded up (Narayanan et al. 2019, section 3.2, state it for the first stage). In the steady state a
// replica of stage s begins a micro-batch every d_s periods, and its gradient comes back after d_s + d_(s+1) + ... periods.
int kept_in_turn(const std::vector<int>& replicas, int stage);

}  // namespace foreshard
