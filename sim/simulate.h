// simulate: replays a Plan on a Cluster (replay/replay.h) with SimGrid as the clock, in a process of its own (sim/forked_process.h).
#pragma once

#include <functional>
#include <string>

#include "replay/replay.h"

namespace foreshard {

using SimulateOptions = ReplayOptions;

// Work that `simulate` does in this process while the clock runs in another one, so work that needs no simulated times (an analysis of the
// plan, say) does not lengthen the call.
using Meanwhile = std::function<void(const Plan& plan)>;

// Does nothing in a build with SimGrid. In a build without it (sim/no_simgrid.cpp) throws a DeviceError that names the operation `call` and
// tells the user what to do `instead`.
void expect_simgrid(const std::string& call, const std::string& instead);

// Throws what `replay` throws, and DeviceError in a build without SimGrid or if the simulation's process dies.
Result simulate(const Plan& plan, const Cluster& cluster, const SimulateOptions& options = {}, const Meanwhile& meanwhile = {});
// The same; moves the plan into the Result instead of copying it.
Result simulate(Plan&& plan, const Cluster& cluster, const SimulateOptions& options = {}, const Meanwhile& meanwhile = {});

}  // namespace foreshard
