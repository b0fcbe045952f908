// The pace of a pipeline whose ranks differ: each stands on a GPU of its own sort. Closed forms over the ranks one by one
// (docs/search-estimates.md, "Screen"). Times in seconds. Internal to strategy/.
#pragma once

#include <vector>

#include "strategy/schedule/schedule.h"

namespace foreshard {

struct RankTimes {
  double forward = 0, backward = 0;            // of its first chunk, or its last one at the last rank
  double more_forward = 0, more_backward = 0;  // of all its other chunks
  double weights = 0;                          // of backward and more_backward: weight gradients
  double chunk = 0;                            // forward and backward of one chunk between the ends
  double all() const { return forward + backward + more_forward + more_backward; }
};

struct MixedTimes {
  std::vector<RankTimes> ranks = {};
  int chunks = 1;
  double microbatches = 1;
  double hop = 0;  // PipelineTimes
};

// As pipeline_time and pipeline_bound, with which they agree where ranks are equal.
double mixed_time(const ScheduleEntry& schedule, const MixedTimes& times);
double mixed_bound(const ScheduleEntry& schedule, const MixedTimes& times);

}  // namespace foreshard
