// Residency under DeepSpeed's ZeRO stage 3 once it has traced the order of uses in a first step: modules are prefetched up to a number of
// elements, and released unless they are used again soon (deepspeedai/DeepSpeed,
// deepspeed/runtime/zero/partitioned_param_coordinator.py and config.py). Units are modules, which may be as small as single matrices.
#pragma once

#include "strategy/residency/residency.h"

namespace foreshard {

// All numbers are elements. Defaults and, in brackets, names are DeepSpeed's.
struct ModuleRule {
  // A module of at most `persist_threshold` (param_persistence_threshold) is never sharded, as long as the total of such modules, in their
  // order, is at most `persist_cap` (model_persistence_threshold).
  std::int64_t persist_threshold = 100'000, persist_cap = std::int64_t{1} << 62;
  std::int64_t prefetch = 50'000'000;  // (prefetch_bucket_size) prefetched at each moment
  // (max_live_parameters) no prefetch while this many are gathered; it limits nothing else.
  std::int64_t live_cap = 1'000'000'000;
  // (max_reuse_distance) a module stays if fewer than this are used before its next use.
  std::int64_t reuse_distance = 1'000'000'000;
};

// The residency under this rule. At each moment, in this order:
//   1. the module in use is gathered on demand, unless it is on the device;
//   2. modules of later uses are prefetched, up to `prefetch` and `live_cap`;
//   3. the module in use is released, unless it is used again within `reuse_distance`, or the prefetch has already passed its next use and
//      so would not gather it again.
// For a first step, before the order of uses is known, set prefetch and reuse_distance to 0: nothing is prefetched or kept.
Residency module_residency(const std::vector<ParameterUnit>& modules, const std::vector<UnitUse>& uses, const ModuleRule& rule);

}  // namespace foreshard
