// Checks recomputation choices that name layers or count them per stage against the layers that exist. Internal to strategy/.
#pragma once

#include <optional>

#include "core/base/error.h"
#include "core/graph/op_graph.h"
#include "core/strategy/strategy.h"
#include "strategy/schedule/stage_layout.h"

namespace foreshard {

// Why `recompute` does not fit these stages; empty: it fits. It names a layer that the model does not have, or more layers than a stage
// has, or a number of stages that is neither that of `layout` nor of pipeline ranks (`pp`).
std::optional<Infeasible> refuse_layers(const Recompute& recompute, const OpGraph& graph, const StageLayout& layout, int pp);

// Number of layers of the stage that are counted by a layer split and by `recompute full:N`: embedding and head are not.
int counted_layers(const OpGraph& graph, const StageLayout& layout, int stage);

}  // namespace foreshard
