// How much device memory chunks of parameters (Gemini, PatrickStar) may take beside the rest of the plan. Internal to strategy/.
#pragma once

#include <optional>

#include "core/base/error.h"
#include "strategy/program/lowering.h"

namespace foreshard {

// Fills ChunkRule::budget (elements) of each state row whose rule limits the plan to a share of the device (cap_ratio > 0). The budget is
// that share less all other memory of the plan, which is found by building the plan without idle chunks on the device. Offsets are fixed,
// so the other memory is constant over time. `lowering` must have no roles yet. Infeasible: the budget is smaller than the largest chunk;
// with `at_least_largest` the budget is raised to that chunk's size instead.
std::optional<Infeasible> set_chunk_budget(Lowering& lowering, bool at_least_largest);

}  // namespace foreshard
