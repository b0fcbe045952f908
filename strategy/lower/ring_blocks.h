// Blocks of a plan that live from one action to another, with their lifetimes over a run: what the memory planner packs.
#pragma once

#include <vector>

#include "core/plan/plan.h"
#include "strategy/memory/packing.h"

namespace foreshard {

// The blocks of one slot of buffers that are acquired by the same actions and released by the same actions. Time is counted in
// actions: a block counts as alive during the whole of the action that acquires it and of the one that releases it.
//
// Buffers of several such groups are one where a slot of one group is used after the same slot of another (zero bubble: what waits for
// the input gradients of a micro-batch, then what these leave for its weight gradients). Then they share bytes inside the block.
struct RingBlocks {
  std::vector<BufferId> buffers = {};
  std::vector<Bytes> offsets = {};  // [buffer]: in the block
  int slot = 0;
  TimedBlock block = {};
};

// Of those of `buffers` that only the compute stream acquires and releases: its order is that of the actions, so bytes of a block
// that has been released are free for a later action.
std::vector<RingBlocks> ring_blocks(const Plan& plan, const Role& role, const std::vector<BufferId>& buffers,
                                    std::int64_t alignment);

}  // namespace foreshard
