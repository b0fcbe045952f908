// A memory limit makes a large machine behave like a small device.
#pragma once

#include <optional>

#include "core/base/error.h"
#include "core/plan/plan.h"

namespace foreshard {

// The role that exceeds the limit most: device arena plus the plan's framework bytes.
std::optional<Infeasible> exceeds_limit(const Plan& plan, Bytes limit);

// Whether the arenas of all ranks together exceed the memory of this machine.
std::optional<Infeasible> exceeds_machine(const Plan& plan);

}  // namespace foreshard
