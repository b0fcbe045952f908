// The op graph of a layer list (CNNs, multilayer perceptrons). Its DAG of entries is grouped into a chain of layers; --layer-split and
// `partition` count these layers.
#pragma once

#include <vector>

#include "core/graph/op_graph.h"

namespace foreshard {

// [layer of the chain]: its entries, ascending. A new layer begins where a single value crosses from the entries before to those after,
// and the next entry has weights. So a residual block stays together, and norms, activations and pools stay with the layer before them.
std::vector<std::vector<int>> chain_layers(const LayerList& list);

// How tensor parallelism cuts the linear layers. They are cut in pairs (layouts: core/network/tensor_layout.h):
//
//   x broadcast -> columns of the first -> split -> relu, flatten -> split -> rows of the second -> partial sums -> all-reduce -> broadcast
//
// A linear layer is the first of a pair if only activations lie between it and the next linear layer. Any other is cut by columns, and its
// output is gathered at once (split -> all-gather -> broadcast); if tp does not divide its features, every rank holds it whole. Throws
// Error for tp above 1 if a layer of another kind has weights, tp does not divide the features inside a pair, or nothing can be cut.
struct LayerCuts {
  std::vector<int> of = {};         // [entry]: 0: linear layer cut by columns, 1: by rows, -1: not cut
  std::vector<char> split = {};     // [entry]: each rank has a part of the features of its output
  std::vector<char> gathered = {};  // [entry]: cut by columns, and its output is gathered
};
LayerCuts layer_cuts(const LayerList& list, int tp);

OpGraph layer_list_graph(const LayerList& list, const Sharding& sharding);

// Model FLOPs of one sample, forward + backward: 3 times the forward, but twice for layers that read the sample, whose gradient is not
// computed (if list.classes > 0).
Flops layer_list_flops(const LayerList& list);

}  // namespace foreshard
