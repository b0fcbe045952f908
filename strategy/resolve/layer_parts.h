// Into how many parts the operations of each layer are cut. Internal to strategy/.
#pragma once

#include <optional>
#include <vector>

#include "core/base/error.h"
#include "core/graph/op_graph.h"
#include "core/strategy/strategy.h"
#include "strategy/resolve/tables.h"

namespace foreshard {

// What CommunicationChoice::parts says, layer by layer; empty if no operation is cut.
std::vector<PartsRow> layer_parts(const std::vector<int>& parts, const OpGraph& graph);

// Why the parts do not match the model: they are given for more layers than it has.
std::optional<Infeasible> refuse_parts(const Strategy& strategy, const OpGraph& graph);

}  // namespace foreshard
