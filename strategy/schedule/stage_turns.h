// The order of work when the replicas of a pipeline stage take turns: replica r of d has the micro-batches r, r + d, r + 2d, ...
// (PipeDream's 1F1B round robin, Narayanan et al. 2019, with one optimizer step for all of them).
//
//   stage 0, two replicas   r0  0> 2> ......... 0<< 4> 2<< ...
//                           r1  1> 3> ............. 1<< 5> ...
//   stage 1, one replica        0> 0< 1> 1< 2> 2< ...
#pragma once

#include <vector>

#include "strategy/schedule/schedule.h"

namespace foreshard {

// Of one stage; micro-batches are counted by each replica for itself, so the lists of its replicas are equal.
struct StageTurns {
  std::vector<ScheduleOp> list = {};
  int input_slots = 0, gradient_slots = 0;  // places of what comes from the stage before, from the one after
};

// [stage], with replicas[s] of stage s. The schedule is GPipe or 1F1B; each number of replicas divides `microbatches`. Never a
// deadlock: docs/lowering.md, "Stages with degrees of their own".
std::vector<StageTurns> stage_turns(Schedule schedule, const std::vector<int>& replicas, int microbatches);

// How many micro-batches a replica of `stage` keeps under 1F1B: in the steady state each of the d_s replicas begins one in d_s times
// the time of a micro-batch, and it takes the stages from here to the last one sum d_j of those times to send it back.
int kept_in_turn(const std::vector<int>& replicas, int stage);

}  // namespace foreshard
