// The interval of a predicted iteration time: from the shipped residuals of published runs, or from the runs that a profile was
// learned from.
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

// What is known of a run for its interval. `experts`: of a model with experts.
PredictedRun predicted_run(const Cluster& cluster, const Strategy& strategy, bool experts);
// The interval of its time as measured / predicted, wider where the rates of its products were measured on other GPUs only.
Spread time_spread(const Comparisons& comparisons, const PredictedRun& run, const Gpu& gpu, DType precision);

// The interval with ends farther out by what else is not known, in ln: independent of it, so squares are added.
Spread wider(Spread spread, double below, double above);

// From published runs with the GPUs of the cluster's first node and the strategy's framework, of models with experts or of dense
// ones. Nothing for a cluster of hosts without GPUs: there are no published runs for them.
std::optional<PredictionInterval> interval_of(const Cluster& cluster, const Strategy& strategy, bool experts,
                                              Seconds predicted);

// From the errors of the runs that the profile was learned from. Nothing for a profile that was not learned from runs.
std::optional<PredictionInterval> learned_interval(const MachineProfile* profile, const Lowered& lowered,
                                                   const Cluster& cluster, Seconds predicted);

}  // namespace foreshard
