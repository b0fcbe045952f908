// The makespan of a pipeline whose stages between the first and the last are equal, in closed form (docs/search-estimates.md, "Screen").
// Times in seconds.
#pragma once

#include <array>

#include "strategy/schedule/schedule.h"

namespace foreshard {

struct PipelineTimes {
  int ranks = 1, chunks = 1;
  double microbatches = 1;
  std::array<double, 4> forward = {}, backward = {};  // of a chunk: first stage, one between, last stage, the only stage
  std::array<double, 4> weights = {};                 // of backward: the weight gradients, where a schedule has them apart
  double hop = 0;                                     // transfer between neighbouring ranks, one direction
  // Stages, from the second on, that have one layer less than the others between the ends, and the time they save.
  int fewer = 0;
  double forward_less = 0, backward_less = 0;
};

double pipeline_time(const ScheduleEntry& schedule, const PipelineTimes& times);
void stand_still(PipelineTimes& times);  // while they send
// No synchronous run of that schedule is faster, whatever transfers take.
double pipeline_bound(const ScheduleEntry& schedule, const PipelineTimes& times);

}  // namespace foreshard
