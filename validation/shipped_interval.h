// The interval of a predicted iteration time, from the shipped residuals of published runs or from the runs that a profile learned from.
#pragma once

#include <optional>
#include <vector>

#include "core/cluster/cluster.h"
#include "core/profile/machine_profile.h"
#include "core/result/summary.h"
#include "core/strategy/strategy.h"
#include "strategy/lower/lower.h"
#include "validation/prediction_interval.h"

namespace foreshard {

// accuracy/residuals.json. Throws Error when it cannot be read.
std::vector<Spread> shipped_spreads();

// For the GPUs of the cluster's first nodes, from the runs of models with experts or from those of dense ones. Nothing for a host: no
// published run tells how sure a prediction for it is.
std::optional<PredictionInterval> interval_of(const Cluster& cluster, const Strategy& strategy, bool experts,
                                              Seconds predicted);

// Of a plan with the costs of a profile that learned from runs: those runs say how sure it is. Nothing for other profiles.
std::optional<PredictionInterval> learned_interval(const MachineProfile* profile, const Lowered& lowered,
                                                   const Cluster& cluster, Seconds predicted);

}  // namespace foreshard
