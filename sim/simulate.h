// simulate: replays a Plan on a Cluster with SimGrid as the clock.
#pragma once

#include <functional>
#include <string>

#include "replay/replay.h"

namespace foreshard {

using SimulateOptions = ReplayOptions;

// Called with the plan while the clock runs in another process: what needs no times costs no time here.
using Meanwhile = std::function<void(const Plan& plan)>;

// Nothing where SimGrid is built in. Without it (sim/no_simgrid.cpp) throws DeviceError: `call` failed, and `instead` is what can be done.
void expect_simgrid(const std::string& call, const std::string& instead);

// Throws what `replay` throws; without SimGrid DeviceError.
Result simulate(const Plan& plan, const Cluster& cluster, const SimulateOptions& options = {}, const Meanwhile& meanwhile = {});
// The Result takes the plan.
Result simulate(Plan&& plan, const Cluster& cluster, const SimulateOptions& options = {}, const Meanwhile& meanwhile = {});

}  // namespace foreshard
