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

// How tensor parallelism cuts the linear layers, in pairs (core/network/tensor_layout.h has the layouts and what their conversions move):
//
//   x broadcast -> columns of the first -> split -> relu, flatten -> split -> rows of the second -> partial sums -> all-reduce -> broadcast
//
// A linear layer that has no other behind it with activations alone between them is cut by columns, and these are gathered at once (split ->
// all-gather -> broadcast); where tp does not divide its features it is whole on every rank. Throws Error for tp above 1 where another layer
// has weights, tp does not divide the features inside a pair, or nothing can be cut.
struct LayerCuts {
  std::vector<int> of = {};         // [entry] of a linear layer: 0 by columns, 1 by rows, -1 whole
  std::vector<char> split = {};     // [entry] its output: each rank has a part of the features
  std::vector<char> gathered = {};  // [entry] by columns, and these are gathered
};
LayerCuts layer_cuts(const LayerList& list, int tp);

OpGraph layer_list_graph(const LayerList& list, const Sharding& sharding);

// Forward + backward of one sample: 3 times the forward, less the gradient of the sample itself where there is none.
Flops layer_list_flops(const LayerList& list);

}  // namespace foreshard
