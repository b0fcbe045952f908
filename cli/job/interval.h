// The interval of a predicted iteration time, from the shipped residuals of measured runs.
#pragma once

#include <optional>
#include <vector>

#include "cli/job/job.h"
#include "core/cluster/cluster.h"
#include "core/profile/machine_profile.h"
#include "core/result/summary.h"
#include "core/strategy/strategy.h"
#include "report/validation/prediction_interval.h"
#include "strategy/lower/lower.h"

namespace foreshard {

// accuracy/residuals.json. Throws Error when it cannot be read.
std::vector<Spread> shipped_spreads();

// For the GPUs of the cluster's first nodes. Nothing for a host: no published run tells how sure a prediction for it is.
std::optional<PredictionInterval> interval_of(const Cluster& cluster, const Strategy& strategy, Seconds predicted);

// Of a plan with the costs of a profile that learned from runs: those runs say how sure it is. Nothing for other profiles.
std::optional<PredictionInterval> learned_interval(const MachineProfile* profile, const Lowered& lowered,
                                                   const Cluster& cluster, Seconds predicted);
// The same of a strategy, which is lowered for it; the shipped residuals where there is no such profile.
std::optional<PredictionInterval> interval_of(const Job& job, const Strategy& strategy, Seconds predicted);

}  // namespace foreshard
