// Recomputation that names layers: whether they are there. Internal to strategy/.
#pragma once

#include <optional>

#include "core/base/error.h"
#include "core/graph/op_graph.h"
#include "core/strategy/strategy.h"
#include "strategy/schedule/stage_layout.h"

namespace foreshard {

// Why `recompute` does not go with these stages: another number of them, more layers than a stage or the model has.
std::optional<Infeasible> refuse_layers(const Recompute& recompute, const OpGraph& graph, const StageLayout& layout, int pp);

int counted_layers(const OpGraph& graph, const StageLayout& layout,
                   int stage);  // that a layer split and recompute full:N count

}  // namespace foreshard
