// The SimGrid module (libforeshard_simgrid.so): sim/simgrid_clock.cpp and SimGrid's libraries. It is opened at the first simulation, and a
// build without SimGrid does not have it.
#pragma once

#include <memory>
#include <string>

#include "replay/clock.h"

namespace foreshard::sim {

// Opens the module, if it is not open yet. Throws DeviceError that says what is missing: `operation` needs SimGrid, `advice` ends the message.
void open_simgrid(const std::string& operation, const std::string& advice = "");

// The clock of `simulate`. It implements player::Clock (replay/clock.h, which documents the functions and their units) with SimGrid 3.32.
// SimGrid aborts on invalid numbers, so replay/validate.h checks them beforehand. A process can make only one such clock in its life,
// because SimGrid keeps its time and the callbacks of every engine until the process ends (sim/forked_process.h). Opens the module. Throws
// Error if this process has made one before.
std::unique_ptr<player::Clock> new_simgrid_clock();

// The entry point of the module: makes a clock, or returns null and sets *why. `version`: kModuleVersion of the caller; the module refuses
// another one, because player::Clock may differ.
inline constexpr int kModuleVersion = 1;
inline constexpr const char* kModuleEntry = "foreshard_simgrid_clock";
using ModuleEntry = player::Clock* (*)(int version, const char** why);

}  // namespace foreshard::sim
