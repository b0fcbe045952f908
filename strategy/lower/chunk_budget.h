// What a device leaves to chunks of parameters. Internal to strategy/.
#pragma once

#include <optional>

#include "core/base/error.h"
#include "strategy/program/lowering.h"

namespace foreshard {

// Fills ChunkRule::budget of the rows where a rule says the share of the device that the plan may take: that share less what the plan
// takes otherwise, as it is found by building it with no idle chunk. A plan's offsets are fixed, so the others take the same at every
// moment. `lowering` has no roles yet. Infeasible: the largest chunk does not fit; with `at_least_largest` the budget is its size.
std::optional<Infeasible> set_chunk_budget(Lowering& lowering, bool at_least_largest);

}  // namespace foreshard
