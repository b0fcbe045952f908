// What the critical chain of a run is made of: the share of its time in computation, communication and waiting.
#pragma once

#include <array>
#include <cstdint>
#include <vector>

#include "core/plan/plan.h"
#include "core/result/trace.h"
#include "report/causes/binding.h"

namespace foreshard {

enum class PathKind : std::uint8_t { Compute, Collective, Transfer, Copy, Waiting };
inline constexpr int kPathKinds = 5;
using PathTimes = std::array<Nanoseconds, kPathKinds>;  // [PathKind]

// The time of each kind on the chain; together they are the makespan. A span of several instructions counts as computation
// for the isolated times of its computes and as collective for the rest. Waiting: gaps in the trace of a measured run.
PathTimes path_times(const Plan& plan, const Trace& trace, const std::vector<ChainStep>& chain);

}  // namespace foreshard
