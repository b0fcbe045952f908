// What a plan's blocks would take if they were not laid out before the run but asked for, one after the other, from PyTorch's caching
// allocator.
#pragma once

#include "core/plan/plan.h"

namespace foreshard {

struct OnlineAllocation {
  Bytes asked_peak = {};          // the most bytes of blocks at one time
  Bytes allocated_peak = {};      // ... as the allocator rounds them
  Bytes reserved = {};            // taken from the device
  double fragmentation() const {  // reserved beyond what was asked for
    return asked_peak.value > 0 ? static_cast<double>(reserved.value) / static_cast<double>(asked_peak.value) - 1 : 0;
  }
};

// Acquires and releases of a role in the order in which it issues them: an allocator on the host knows no other. First the resident
// blocks, then two runs of the plan: in the second one the pools are warm, and blocks that stay from one run to the next are there.
OnlineAllocation allocate_online(const Plan& plan, RoleId role, Space space = Space::Device);

}  // namespace foreshard
