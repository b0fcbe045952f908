// Renumbers the slots that blocks use, so that more blocks can share bytes.
//
// A block has one offset, so it shares bytes only with what is never alive together with it. Which slot of a ring a micro-batch has therefore
// matters. Scratch at a fixed slot may not share bytes with anything that is alive while any micro-batch uses it:
//
//   1F1B, two in flight     B0 releases the layers of slot 0 one after the other, while slot 1 is full; B1 those of slot 1, while slot 0 is full
//   scratch, one slot       shares bytes with neither slot
//   scratch, two slots      slot 0 in the released bytes of slot 0, slot 1 in those of slot 1
#pragma once

#include <vector>

#include "core/plan/plan.h"

namespace foreshard {

// Groups of roles, as indices, that run the same segments. They have the same buffers at the same indices, and get numbers together. Empty:
// some roles share only a part of their segments.
std::vector<std::vector<std::size_t>> sharing_roles(const Plan& plan);

// A plan of these roles, with those segments that they run; the others are empty, so that indices stay.
Plan roles_alone(const Plan& plan, const std::vector<std::size_t>& roles);
// Moves roles and segments of such a plan back into the whole one.
void put_back(Plan alone, const std::vector<std::size_t>& roles, Plan& plan);

// In all roles, what the compute stream acquires and releases at fixed slots inside one segment gets the slot of the micro-batch in flight
// that the segment works for. False: there is nothing like this, or no role has two micro-batches in flight. Offsets are to be planned again.
bool number_scratch(Plan& plan);

// What lives for a part of the time of a micro-batch in flight (until its input gradients; from these to the weight gradients) gets the slot
// of its activations. So the second kind can lie in the bytes of the first kind of the same micro-batch. False: there is nothing like this.
bool number_kept(Plan& plan);

// In all roles, each lifetime inside a segment of what compute acquires and releases there gets a buffer of its own: the layers of a segment
// no longer share one offset. False: no segment acquires such a block twice. Offsets are to be planned again.
bool split_scratch(Plan& plan);

}  // namespace foreshard
