// Offsets of every block of a plan, from the order of its instructions only. Each space has an arena of its own.
//
//   0 ......................................................................................... arena
//   | resident: parameters, gradients, states | rings: a place per slot | scratch of one action, packed |
//
// Blocks that live from one action to another have bytes of their own, unless their rings are not full at one time: those of a rank
// with several chunks or with split backwards. Blocks that come and go inside one action share bytes with those they never meet. Who
// shares what is decided by pack() (strategy/memory/packing.h).
#pragma once

#include "core/plan/plan.h"

namespace foreshard {

inline constexpr std::int64_t kBlockAlignment = 256;

struct MemoryPlanOptions {
  // Blocks that wait for the backward of the only micro-batch in flight share bytes with scratch, too: what a recomputation
  // schedule makes again lies where what was kept has died. Others keep bytes of their own, so that what stages need adds up.
  bool share_kept = false;
  // Nodes that the search may take for what pack() leaves above its bound (pack_smallest), per packing; 0: no search.
  std::int64_t search_nodes = 0;
};

// Fills Buffer::offsets of every role.
void plan_memory(Plan& plan, const MemoryPlanOptions& options = {});

}  // namespace foreshard
