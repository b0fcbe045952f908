// The 90 % interval around the predicted iteration time of a job.
#pragma once

#include <optional>

#include "cli/job/job.h"
#include "core/result/summary.h"
#include "core/strategy/strategy.h"
#include "validation/shipped_interval.h"

namespace foreshard {

// From the errors of the runs that the job's profile was learned from (this lowers the strategy), or, without such a profile,
// from the shipped residuals of published runs. Empty for a host without such a profile.
std::optional<PredictionInterval> interval_of(const Job& job, const Strategy& strategy, Seconds predicted);

}  // namespace foreshard
