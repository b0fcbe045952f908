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

// Opens the SimGrid module (sim/simgrid_module.h), if it is not open yet. Throws a DeviceError that names the `operation`, says what is missing
// and tells the user what to do `instead`.
void expect_simgrid(const std::string& operation, const std::string& instead);

// Throws what `replay` throws, and DeviceError if there is no SimGrid module or the simulation's process dies.
Result simulate(const Plan& plan, const Cluster& cluster, const SimulateOptions& options = {}, const Meanwhile& meanwhile = {});
// The same; moves the plan into the Result instead of copying it.
Result simulate(Plan&& plan, const Cluster& cluster, const SimulateOptions& options = {}, const Meanwhile& meanwhile = {});

}  // namespace foreshard
