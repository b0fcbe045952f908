// The interval of a predicted iteration time of a job.
#pragma once

#include <optional>

#include "cli/job/job.h"
#include "core/result/summary.h"
#include "core/strategy/strategy.h"
#include "validation/shipped_interval.h"

namespace foreshard {

// The runs that the job's profile learned from say how sure the prediction is; without such a profile the shipped residuals. The
// strategy is lowered for it.
std::optional<PredictionInterval> interval_of(const Job& job, const Strategy& strategy, Seconds predicted);

}  // namespace foreshard
