// What allocators would take for a strategy and its plan, as simulate prints it: the framework's own, and PyTorch's caching allocator under
// the plan's order of acquires and releases.
#pragma once

#include <string>

#include "cli/job/prepared.h"
#include "core/plan/plan.h"

namespace foreshard {

// What the allocator of the framework that was named would hold, per pipeline rank; empty: none was named.
std::string allocation_json(const Prepared& prepared);
std::string allocation_text(const Prepared& prepared);

// Of every stage (docs/json-output.md); of the one that would reserve most, for people.
std::string caching_allocator_json(const Plan& plan);
std::string caching_allocator_text(const Plan& plan);

}  // namespace foreshard
