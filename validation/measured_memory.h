// Memory of a measured run: what its framework's allocator holds, in the row's own definition.
#pragma once

#include "strategy/frameworks/framework_allocation.h"
#include "validation/measured_case.h"

namespace foreshard {

MemoryTraits traits_of(const MeasuredCase& question);  // of its framework, with its flags and what it keeps in host memory
// With no ranks: `lower` would refuse it.
FrameworkAllocation allocation_of(const MeasuredCase& question, const Strategy& strategy);
bool fits(const FrameworkAllocation& allocation, const MeasuredCase& question);

// GiB, or per cent for a share of the activations without recomputation and sequence parallelism.
double memory_value(const MeasuredCase& question, const Strategy& strategy, const FrameworkAllocation& allocation);

}  // namespace foreshard
