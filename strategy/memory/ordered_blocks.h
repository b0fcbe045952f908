// When the blocks of a rank may be alive, whatever the timing: on the axis of its compute stream.
//
// A moment of an execution is a position of the compute stream: 2 k after k of its instructions have ended, 2 k + 1 while the next one runs. A
// block that another stream acquires may be alive as soon as compute has ended what that acquire waits for, and until the first compute
// instruction that waits for its release.
//
//   compute       | 0 | 1 | 2 | 3 |           positions 0 .. 8
//   transfers           [a====]                 a: its acquire waits for 0, compute 3 waits for its release
//   a may be alive    [===========)             from 2 until 7
//
// Two blocks whose lifetimes do not overlap on this axis are never alive together, since waits order them against the compute stream. If
// they overlap, waits of other streams may still keep them apart: `meets` has only the pairs that no wait keeps apart. All others may share
// bytes.
#pragma once

#include <vector>

#include "core/plan/plan.h"
#include "core/plan/program.h"
#include "strategy/memory/block_pairs.h"
#include "strategy/memory/packing.h"

namespace foreshard {

struct OrderedBlock {
  BufferId buffer = {};
  int slot = 0;
  TimedBlock block = {};
};

struct OrderedBlocks {
  std::vector<OrderedBlock> blocks = {};  // slot by slot: blocks of one micro-batch are adjacent
  BlockPairs meets = BlockPairs();        // those that may be alive together
};

struct OrderedLimits {
  int steps = 0;   // most instructions of a run
  int blocks = 0;  // most blocks
};

// All blocks of the role in `space` that are not resident, over one run and the part of the next run that may overlap it. Empty: there are
// more instructions or blocks than `most` says, or another rank of the device uses one of these buffers.
OrderedBlocks ordered_blocks(const Plan& plan, const MeetingPoints& meetings, RoleId role, Space space,
                             const OrderedLimits& most);

}  // namespace foreshard
