// The strategy of a job that names a model and a cluster but no degrees, where the strategy as it was given is refused or does not fit.
#pragma once

#include <optional>
#include <string>

#include "cli/job/job.h"
#include "cli/program/verb.h"

namespace foreshard {

struct FirstAnswer {
  Strategy strategy = {};    // resolved
  std::string options = {};  // those in which it differs from what was given: "--tp 2 --zero 1"
};

// The fastest that a short search finds: what was given stays, the batch of `as_given` too, and the schedule, the layer split and what is
// overlapped are not searched. Empty: a degree, a ZeRO stage, an offload, a policy, a strategy file, --set strategy.*, --as-given or
// --ignore-memory was given; or nothing fits without host memory, which is not searched. `as_given`: the job's strategy, resolved unless it is refused.
std::optional<FirstAnswer> first_answer(const Arguments& arguments, const Job& job, const Strategy& as_given);

}  // namespace foreshard
