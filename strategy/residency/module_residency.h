// Residency of modules that are prefetched by a number of elements and released unless they are used again soon: the rule of DeepSpeed's
// ZeRO stage 3 (deepspeedai/DeepSpeed, deepspeed/runtime/zero/partitioned_param_coordinator.py and config.py) once its first step is
// traced. Units are modules, as small as single matrices.
#pragma once

#include "strategy/residency/residency.h"

namespace foreshard {

// The defaults are DeepSpeed's. All numbers are elements.
struct ModuleRule {
  std::int64_t persist_threshold = 100'000;          // a module of at most so many elements is never cut ...
  std::int64_t persist_cap = std::int64_t{1} << 62;  // ... as long as those that are not, in order, have no more in total
  std::int64_t prefetch = 50'000'000;                // modules are prefetched at one moment until they have so many
  std::int64_t live_cap = 1'000'000'000;             // nothing is prefetched beyond; gathers on demand and releases ignore it
  std::int64_t reuse_distance = 1'000'000'000;       // kept if used again before so many elements of modules went by
};

// At each moment, in this order: the used module is gathered on demand unless it is there; modules of the uses to come are prefetched, until
// `prefetch` elements or up to `live_cap`; the used module is released, unless the prefetch has already passed its next use (it would not
// come back to it), or it is used again within `reuse_distance`.
Residency module_residency(const std::vector<ParameterUnit>& modules, const std::vector<UnitUse>& uses, const ModuleRule& rule);

}  // namespace foreshard
