// simulate: replays a Plan on a Cluster with SimGrid as the clock.
#pragma once

#include "replay/replay.h"

namespace foreshard {

using SimulateOptions = ReplayOptions;

// Throws what `replay` throws.
Result simulate(const Plan& plan, const Cluster& cluster, const SimulateOptions& options = {});
Result simulate(Plan&& plan, const Cluster& cluster, const SimulateOptions& options = {});  // the Result takes the plan

}  // namespace foreshard
