// Finds the blocks of a plan that live from one action to another, with their lifetimes over a run. The memory planner packs them.
#pragma once

#include <vector>

#include "core/plan/plan.h"
#include "strategy/memory/packing.h"

namespace foreshard {

// A group is a set of buffers that the same actions acquire and the same actions release. This is one slot of all buffers of a group, as
// one block. Time is counted in actions: a block is alive during the whole of the action that acquires it and of the one that releases it.
//
// Two groups are merged if they always use the same slot number for a micro-batch and if sharing bytes inside the block makes it smaller.
// That is so with zero-bubble schedules: one group lives until the input gradients, the other from these until the weight gradients.
struct RingBlocks {
  std::vector<BufferId> buffers = {};
  std::vector<Bytes> offsets = {};  // [buffer]: from the start of the block
  int slot = 0;
  TimedBlock block = {};  // bytes of the whole block; lifetimes in actions
};

// Considers only those of `buffers` that the compute stream alone acquires and releases. The compute stream runs in the order of the
// actions, so the bytes of a released block are free for every later action.
std::vector<RingBlocks> ring_blocks(const Plan& plan, const Role& role, const std::vector<BufferId>& buffers,
                                    std::int64_t alignment);

}  // namespace foreshard
