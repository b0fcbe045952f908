// Full recomputation layer by layer: which layers it takes in. Internal to strategy/.
#pragma once

#include <optional>
#include <vector>

#include "core/base/error.h"
#include "core/graph/op_graph.h"
#include "core/strategy/strategy.h"
#include "strategy/schedule/stage_layout.h"

namespace foreshard {

// [op graph layer]: its number in keep_forms(recompute). Other than 0 are only layers that count: under RecomputeKind::Full those
// whose backward runs their whole forward again, under Each those that do not keep all. `recompute.layers` is at least 0. Ranks of
// stages are those of `schedule` on `pp` ranks.
std::vector<char> layers_redone(const Recompute& recompute, const OpGraph& graph, const StageLayout& layout, Schedule schedule,
                                int pp);
// Why `recompute` does not go with these stages: another number of them, more layers than a stage or the model has.
std::optional<Infeasible> refuse_layers(const Recompute& recompute, const OpGraph& graph, const StageLayout& layout, int pp);

int counted_layers(const OpGraph& graph, const StageLayout& layout,
                   int stage);  // that a layer split and recompute full:N count

}  // namespace foreshard
