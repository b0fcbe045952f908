// Gives every use of a slot, from its first acquire to its last release, a slot number of its own.
//
// A block has one offset for all micro-batches that use its slot. So blocks that meet two by two at different times need bytes as if all were
// alive at once (pairs_bound in packing.h). If a slot is used once in a run, its block meets only what is alive during this one use. The
// additional slots cost nothing: their blocks share bytes.
//
//   micro-batch      0  1  2  3  4  5
//   two slots        0  1  0  1  0  1     beside anything that is alive in 1 ... and in any other use of 0, wherever it lies
//   six slots        0  1  2  3  4  5     beside what is alive in one use
#pragma once

#include "core/plan/plan.h"

namespace foreshard {

// For all buffers on the device that only parameters of segments number, and that no event is numbered with. Changes arguments of actions
// and the number of slots, nothing else. Offsets are to be planned again. False: no slot of such a buffer is used twice in a run.
bool number_uses(Plan& plan, RoleId role);

}  // namespace foreshard
