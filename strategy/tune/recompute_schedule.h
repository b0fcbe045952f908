// --recompute rotor, revolve and graph: decides what each stage keeps and what it computes again, as the runs of
// strategy/recompute/recompute_runs.h. Internal to strategy/.
#pragma once

#include <optional>
#include <vector>

#include "core/base/error.h"
#include "strategy/program/lowering.h"
#include "strategy/recompute/recompute_runs.h"

namespace foreshard {

// The runs of every stage, from the isolated times of its operators; collectives count as taking no time.
//   Rotor    keeps or recomputes whole layers of a stage   } within the budget; without a budget, within the memory that is free on the
//   Graph    keeps or recomputes operators inside a layer  } rank, found by building the program of each rank
//   Revolve  keeps at most the given number of layer inputs
// `lowering` has no roles yet; `by_order`: of RoleTrial. Infeasible: the pipeline schedule splits backwards, or the budget is too small.
std::variant<std::vector<StageRuns>, Infeasible> schedule_stages(const Lowering& lowering, bool by_order);

}  // namespace foreshard
