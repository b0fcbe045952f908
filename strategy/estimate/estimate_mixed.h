// The makespan of a pipeline whose ranks are on different kinds of GPU: closed forms over the ranks one by one
// (docs/search-estimates.md, "Screen"). Times in seconds. Internal to strategy/.
#pragma once

#include <vector>

#include "strategy/schedule/schedule.h"

namespace foreshard {

struct RankTimes {
  // One micro-batch through the first chunk of the rank; the last rank: its last chunk.
  double forward = 0, backward = 0;
  double more_forward = 0, more_backward = 0;  // through all its other chunks together
  double weights = 0;                          // the part of backward + more_backward in weight gradients
  double chunk = 0;                            // forward + backward of one chunk between the ends of the pipeline
  double all() const { return forward + backward + more_forward + more_backward; }
};

struct UnequalRankTimes {
  std::vector<RankTimes> ranks = {};  // [pipeline rank]
  int chunks = 1;                     // of each rank
  double microbatches = 1;
  double hop = 0;  // as in PipelineTimes
};

// The counterparts of pipeline_time and pipeline_bound (estimate_pipeline.h), equal to them where ranks are equal.
double unequal_rank_time(const ScheduleEntry& schedule, const UnequalRankTimes& times);
double mixed_bound(const ScheduleEntry& schedule, const UnequalRankTimes& times);

}  // namespace foreshard
