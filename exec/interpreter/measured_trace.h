// Makes a Trace from measured steps: with their wall-clock times, or with those of a replay in which every rank has its own core and link
// (TimeMode::Emulated).
#pragma once

#include <vector>

#include "core/plan/ranks.h"
#include "core/result/trace.h"
#include "exec/interpreter/execute.h"
#include "exec/interpreter/interpreter.h"

namespace foreshard {

struct RankRun {  // one run of one rank
  const std::vector<RankStep>* steps = nullptr;
  std::vector<StepSpan> spans = {};  // [step]
};

// The trace of `runs` ([rank]), in which the first span begins at 0.
Trace measured_trace(const Plan& plan, const Ranks& ranks, std::vector<RankRun> runs);

// Replays the plan on the light clock: every step takes its measured cost (RankRun::spans[].own), and a transfer the time of `link`.
// Returns `runs` with the times of the replay. Throws Error if the replay deadlocks.
std::vector<RankRun> compose(const Plan& plan, const Ranks& ranks, std::vector<RankRun> runs, const LinkModel& link);

// Duration of a collective of `members` ranks as a ring, and of one message.
Seconds transfer_time(const LinkModel& link, const Collective& collective, std::size_t members);
Seconds transfer_time(const LinkModel& link, Bytes bytes);

}  // namespace foreshard
