// Checks whether a plan fits into a memory limit, with which a run on a large machine can emulate a small device, and into this machine.
#pragma once

#include <optional>

#include "core/base/error.h"
#include "core/plan/plan.h"

namespace foreshard {

// If the device arena of a rank plus the plan's framework memory exceeds the limit: the reason, naming the role that exceeds it most. Else
// nothing.
std::optional<Infeasible> exceeds_limit(const Plan& plan, Bytes limit);

// If the arenas of all ranks together (without NVMe) exceed the memory of this machine: the reason. Else nothing.
std::optional<Infeasible> exceeds_machine(const Plan& plan);

}  // namespace foreshard
