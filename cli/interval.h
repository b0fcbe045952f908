// The interval of a predicted iteration time, from the shipped residuals of measured runs.
#pragma once

#include "core/cluster.h"
#include "core/strategy.h"
#include "core/summary.h"

namespace foreshard {

// For the GPUs of the cluster's first nodes. Throws Error when accuracy/residuals.json cannot be read.
PredictionInterval interval_of(const Cluster& cluster, const Strategy& strategy, Seconds predicted);

}  // namespace foreshard
