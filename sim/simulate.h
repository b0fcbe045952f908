// simulate: replays a Plan on a Cluster with SimGrid as the clock.
#pragma once

#include <functional>

#include "replay/replay.h"

namespace foreshard {

using SimulateOptions = ReplayOptions;

// Called with the plan while the clock runs in another process: what needs no times costs no time here.
using Meanwhile = std::function<void(const Plan& plan)>;

// Throws what `replay` throws.
Result simulate(const Plan& plan, const Cluster& cluster, const SimulateOptions& options = {}, const Meanwhile& meanwhile = {});
// The Result takes the plan.
Result simulate(Plan&& plan, const Cluster& cluster, const SimulateOptions& options = {}, const Meanwhile& meanwhile = {});

}  // namespace foreshard
