// Predicts the memory of a measured run: what its framework's allocator holds, by the row's own definition of memory.
#pragma once

#include "strategy/frameworks/framework_allocation.h"
#include "validation/measured_case.h"

namespace foreshard {

MemoryTraits traits_of(const MeasuredCase& question);  // of the row's framework, with its flags and its offload
// Has no ranks when the strategy cannot be lowered.
FrameworkAllocation allocation_of(const MeasuredCase& question, const Strategy& strategy);
// Whether the largest rank fits into the memory of the GPU.
bool fits(const FrameworkAllocation& allocation, const MeasuredCase& question);
// Share of that memory which it takes; 0: no ranks.
double filled(const FrameworkAllocation& allocation, const MeasuredCase& question);

// The quantity of the row in GiB, or in the GB that its framework printed; for ActivationShare the activations in per cent of those without recomputation and sequence
// parallelism.
double memory_value(const MeasuredCase& question, const Strategy& strategy, const FrameworkAllocation& allocation);

}  // namespace foreshard
