// Roles whose memory is the same: their streams, events and buffers are equal, and so is the order in which their instructions acquire, use and
// release blocks. Peers and micro-batches may differ. What the order of a run says of the memory of one is true of the others. A schedule that
// goes through the ranks in both directions (DualPipe, Chimera) has such roles, because ranks r and p - 1 - r have the same stages.
#pragma once

#include <cstddef>
#include <vector>

#include "core/plan/plan.h"

namespace foreshard {

// [role]: the first role of the plan with the same memory, the role itself if none before it has. Offsets of blocks count, too.
std::vector<std::size_t> first_equal_roles(const Plan& plan);

// Gives role `to` the slot numbers and offsets of role `from`. They had the same memory before those of `from` were changed.
void copy_memory(Plan& plan, std::size_t from, std::size_t to);

}  // namespace foreshard
