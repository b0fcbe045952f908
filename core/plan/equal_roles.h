// Roles that run equally: the same segments with the same arguments, on equal streams, events and buffers. What the order of a run says of
// their memory is the same, so it is found once. A schedule that goes through the ranks in both directions (DualPipe, Chimera) has such
// roles, because ranks r and p - 1 - r have the same stages.
#pragma once

#include <cstddef>
#include <vector>

#include "core/plan/plan.h"

namespace foreshard {

// [role]: the first role of the plan that runs equally, which is the role itself if none before it does. Names of roles and their devices do
// not matter; offsets of blocks do.
std::vector<std::size_t> first_equal_roles(const Plan& plan);

// Gives the actions of `to` the arguments of those of `from`, and its blocks their slots and offsets. The roles ran equally before those of
// `from` were changed.
void copy_memory(const Role& from, Role& to);

}  // namespace foreshard
