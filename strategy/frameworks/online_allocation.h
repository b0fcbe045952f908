// How much memory the blocks of a plan would take if they were requested one by one from PyTorch's caching allocator during the run,
// instead of being laid out beforehand in an arena.
#pragma once

#include "core/plan/plan.h"

namespace foreshard {

struct OnlineAllocation {
  Bytes asked_peak = {};      // the most bytes requested and not yet freed at one time
  Bytes allocated_peak = {};  // the same with the allocator's rounding
  Bytes reserved = {};        // bytes of the allocator's segments at the end
  // reserved / asked_peak - 1.
  double fragmentation() const {
    return asked_peak.value > 0 ? static_cast<double>(reserved.value) / static_cast<double>(asked_peak.value) - 1 : 0;
  }
};

// Passes the acquires and releases of a role, of blocks in `space`, to the allocator in the order in which the role issues them, the only
// order that an allocator on the host sees. First all resident blocks, then two runs of the plan: in the second one the allocator has free
// segments, and blocks that live from one run to the next are allocated.
OnlineAllocation allocate_online(const Plan& plan, RoleId role, Space space = Space::Device);

}  // namespace foreshard
