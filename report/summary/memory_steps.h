// A memory curve as steps: the live bytes by category from each moment on, with a bound on their number.
#pragma once

#include <vector>

#include "core/result/memory_timeline.h"
#include "core/result/result.h"

namespace foreshard {

struct MemoryStep {
  Nanoseconds when = {};
  LiveBytes live = {};
  bool operator==(const MemoryStep&) const = default;
};

// In time order, the first at 0, one per moment; of more than `most` moments each of `most` equal stretches of the
// makespan keeps the one with the largest sum, so the peak is always there.
std::vector<MemoryStep> memory_steps(const MemoryCurve& curve, Nanoseconds makespan, int most);

// The curves of device memory with their events; those of the result when it kept them, else made from its plan and
// trace.
std::vector<MemoryCurve> device_curves(const Result& result);

}  // namespace foreshard
