// Chooses the offset of every block of a plan from the order of its instructions, without times. Each space (device, host, drive) has an
// arena of its own.
//
//   0 ......................................................................................... arena
//   | resident: parameters, gradients, states | rings: bytes per slot   | scratch of one action, packed |
//
// A ring is a buffer whose blocks live from one action to another. Its blocks share no bytes, except on a rank with split backwards (there
// rings are full at different times) and with `by_order`. Scratch blocks are acquired and released inside one action; they share bytes with
// scratch that is not alive at the same time. pack() decides who shares (strategy/memory/packing.h).
#pragma once

#include "core/plan/plan.h"

namespace foreshard {

inline constexpr std::int64_t kBlockAlignment = 256;  // bytes

struct MemoryPlanOptions {
  // Activations of the only micro-batch in flight that wait for its backward (one slot) share bytes with scratch, too: under a
  // recomputation schedule, recomputed values then lie where kept values have been released. False: they share no bytes with others, so the
  // memory of a stage is the sum of its parts.
  bool share_kept = false;
  // Blocks that other streams than compute acquire, and rings that are not full at one time, share bytes with all others where the order of
  // the whole run allows it (ordered_blocks.h), if that makes the arena clearly smaller. Needs the role's actions.
  bool by_order = false;
  // With by_order: where that leaves an arena far above the order bound, every use of a slot gets a slot of its own (own_slots.h).
  bool own_slots = false;
  // Most search nodes per packing if pack() does not reach the lower bound (pack_smallest); 0: no search.
  std::int64_t search_nodes = 0;
};

// Fills Buffer::offsets of every role. Where packing by the order of the run leaves an arena on the device clearly above the order bound, also
// gives blocks of that role, and of roles that share segments with it, other slot numbers (slot_numbers.h), if this makes it smaller.
void plan_memory(Plan& plan, const MemoryPlanOptions& options = {});

}  // namespace foreshard
