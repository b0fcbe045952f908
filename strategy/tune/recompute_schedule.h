// --recompute rotor, revolve and graph: what each stage keeps and makes again, as the runs of recompute_runs.h. Internal to
// strategy/.
#pragma once

#include <optional>
#include <vector>

#include "core/base/error.h"
#include "strategy/program/lowering.h"
#include "strategy/recompute/recompute_runs.h"

namespace foreshard {

// Runs for every stage, from the times of the operators alone on the GPU (collectives count nothing). Rotor keeps and runs again
// whole layers of a stage, Graph operators inside each layer, both inside the budget or, without one, inside what is free on
// the rank: each rank is tried alone. Revolve keeps at most the given number of layer inputs. `lowering` has no roles yet.
// Infeasible: a schedule that splits backwards; a budget that is too small.
std::variant<std::vector<StageRuns>, Infeasible> schedule_stages(const Lowering& lowering);

}  // namespace foreshard
