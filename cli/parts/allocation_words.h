// Prints, for `simulate`, how much memory allocators would take: the allocator of the framework, and PyTorch's caching allocator with
// the plan's sequence of allocations and releases.
#pragma once

#include <string>

#include "cli/job/prepared.h"
#include "core/plan/plan.h"

namespace foreshard {

// The memory that the framework's allocator would hold, per pipeline rank; empty: the job names no framework.
std::string allocation_json(const Prepared& prepared);
std::string allocation_text(const Prepared& prepared);

// The JSON has every stage (docs/json-output.md), the text the stage that would reserve most.
std::string caching_allocator_json(const Plan& plan);
std::string caching_allocator_text(const Plan& plan);

}  // namespace foreshard
