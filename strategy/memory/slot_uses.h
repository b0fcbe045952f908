// Gives every use of a slot, from its first acquire to its last release, a slot number of its own.
//
// A block has one offset for all micro-batches that use its slot. So blocks that meet pairwise at different times need bytes as if all were
// alive at once (pairs_bound in packing.h). If a slot is used once in a run, its block meets only what is alive during this one use. The
// additional slots cost nothing: their blocks share bytes.
//
//   micro-batch      0  1  2  3  4  5
//   two slots        0  1  0  1  0  1     slot 0 shares no bytes with what is alive in any of its three uses
//   six slots        0  1  2  3  4  5     a slot shares no bytes with what is alive in its one use
#pragma once

#include "core/plan/plan.h"

namespace foreshard {

// For all buffers on the device whose slots are given by segment parameters only, and by none that also gives the slot of an event. Changes
// arguments of actions and the number of slots, nothing else. Offsets are to be planned again. False: no slot of such a buffer is used
// twice in a run.
bool number_uses(Plan& plan, RoleId role);

}  // namespace foreshard
