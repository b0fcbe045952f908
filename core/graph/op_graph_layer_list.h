// Layer lists (CNNs, multilayer perceptrons): a DAG of entries grouped into a chain of layers, which --layer-split and
// `partition` count.
#pragma once

#include <vector>

#include "core/graph/op_graph.h"

namespace foreshard {

// The entries of each layer of the chain, ascending. A cut lies where a single value crosses (its entry dominates
// everything behind it) and the next entry has weights, so a residual block stays together, and norms, activations and
// pools stay with the layer before them.
std::vector<std::vector<int>> chain_layers(const LayerList& list);

OpGraph layer_list_graph(const LayerList& list, const Sharding& sharding);

// Forward + backward of one sample: 3 times the forward, less the gradient of the sample itself where there is none.
Flops layer_list_flops(const LayerList& list);

}  // namespace foreshard
