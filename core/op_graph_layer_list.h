// Layer lists (CNNs, multilayer perceptrons): a DAG of entries grouped into a chain of layers. Used only by
// op_graph_*.cpp.
#pragma once

#include "core/op_graph.h"

namespace foreshard {

OpGraph layer_list_graph(const LayerList& list, const Sharding& sharding);
Flops layer_list_flops(const LayerList& list);  // forward + backward of one sample

}  // namespace foreshard
