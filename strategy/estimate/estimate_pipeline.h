// The makespan of a pipeline whose stages between the first and the last are equal, in closed form (docs/search-estimates.md, "Screen").
// Times in seconds.
#pragma once

#include <array>

#include "strategy/schedule/schedule.h"

namespace foreshard {

struct PipelineTimes {
  int ranks = 1, chunks = 1;
  double microbatches = 1;
  std::array<double, 4> forward = {}, backward = {};  // [stage_kind]: one micro-batch through a chunk
  // [stage_kind]: the part of `backward` in weight gradients (schedules that split it).
  std::array<double, 4> weights = {};
  std::array<double, 4> hidden = {};  // [stage_kind]: time that a cell saves over its forward and backward
  double hop = 0;                     // transfer between neighbouring ranks, one direction
  // The number of stages, from the second on, that have one layer less than the others between the ends, and the time each of them saves.
  int fewer = 0;
  double forward_less = 0, backward_less = 0;
};

double pipeline_time(const ScheduleEntry& schedule, const PipelineTimes& times);
// For transfers that do not overlap with computing: adds the hop to the times of the stages that send, and sets it to 0.
void block_while_sending(PipelineTimes& times);
// Lower bound on the makespan of that schedule with a flush, for transfers of any duration.
double pipeline_bound(const ScheduleEntry& schedule, const PipelineTimes& times);

}  // namespace foreshard
