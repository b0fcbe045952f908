// A memory curve as a step function: the live bytes by category from each moment on, with a limit on the number of steps.
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

// In time order, one step per moment with events, and one at 0. If that is more than `most` steps, each of `most` equal intervals
// of the makespan keeps only its step with the most live bytes; so the peak is always kept, the step at 0 may not be.
std::vector<MemoryStep> memory_steps(const MemoryCurve& curve, Nanoseconds makespan, int most);

// The device-memory curves with their events: those of the result when it has events, otherwise computed from its plan and
// trace.
std::vector<MemoryCurve> device_curves(const Result& result);

}  // namespace foreshard
