// Residency of modules that are prefetched by a number of elements and released unless they are used again soon: the rule of DeepSpeed's
// ZeRO stage 3 (deepspeedai/DeepSpeed, deepspeed/runtime/zero/partitioned_param_coordinator.py and config.py) once its first step is
// traced. Units are modules, as small as single matrices.
#pragma once

#include "strategy/residency/residency.h"

namespace foreshard {

// The defaults are DeepSpeed's. All numbers are elements.
struct ModuleRule {
  // A module of at most `persist_threshold` is never cut, unless it would bring the total of such modules, in their order, above the cap.
  std::int64_t persist_threshold = 100'000, persist_cap = std::int64_t{1} << 62;
  std::int64_t prefetch = 50'000'000;           // at each moment modules are prefetched until they have this many
  std::int64_t live_cap = 1'000'000'000;        // no prefetch while this many are gathered; nothing else reads it
  std::int64_t reuse_distance = 1'000'000'000;  // a module stays if fewer than this are used before its next use
};

// At each moment, in this order:
//   1. the used module is gathered on demand, unless it is there;
//   2. modules of the uses to come are prefetched, up to `prefetch` and `live_cap`;
//   3. the used module is released, unless it is used again within `reuse_distance`, or the prefetch has already passed its next use: it
//      would not come back to it.
// A first step, before the order of uses is known, neither prefetches nor keeps: prefetch and reuse_distance 0.
Residency module_residency(const std::vector<ParameterUnit>& modules, const std::vector<UnitUse>& uses, const ModuleRule& rule);

}  // namespace foreshard
