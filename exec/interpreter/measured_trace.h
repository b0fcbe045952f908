// From measured steps to a Trace: as they happened, or composed to what they would be with a core and a link for every rank.
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

// Moves the spans so that the first begins at 0.
Trace measured_trace(const Plan& plan, const Ranks& ranks, std::vector<RankRun> runs);  // [rank]

// A replay of the plan on the light clock in which every step takes its own time (RankRun::spans[].own) and a transfer what `link`
// says. Throws Error when no step can go on.
std::vector<RankRun> compose(const Plan& plan, const Ranks& ranks, std::vector<RankRun> runs, const LinkModel& link);

// Duration of a collective of n ranks, or of one message.
Seconds transfer_time(const LinkModel& link, const Collective& collective, std::size_t members);
Seconds transfer_time(const LinkModel& link, Bytes bytes);

}  // namespace foreshard
