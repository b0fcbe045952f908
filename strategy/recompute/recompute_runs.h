// Recomputation runs: the order of the operators' forwards and backwards that a pipeline stage runs for one micro-batch under a
// recomputation schedule, and the lifetimes of values that follow from it. Schedules of chains (recompute_chain.h) and of graphs
// (recompute_graph.h) are both written as such a list. Internal to strategy/.
//
//   forward   F0 F1 F2 F3                                     each operator once, or several times in a schedule of a graph
//   backward               B3 | F1 F2 B2 | F1 B1 | B0         backwards from the last to the first, and forwards that are recomputed
//
// A value lives from the run that computes it to the last run that reads it before it is recomputed. So the order alone determines what is
// kept.
#pragma once

#include <vector>

#include "core/graph/op_graph.h"
#include "strategy/recompute/recompute_chain.h"
#include "strategy/recompute/recompute_graph.h"

namespace foreshard {

struct OpRun {
  int layer = 0, op = 0;  // layer of the stage, operator of the layer
  bool backward = false;
  bool operator==(const OpRun&) const = default;
};

struct StageRuns {
  std::vector<OpRun> runs = {};  // without communications that do nothing in the forward
  int turn = 0;                  // index of the first run that belongs to the micro-batch's backward
  bool operator==(const StageRuns&) const = default;
};

using StageLayers = std::vector<const LayerGraph*>;

// The runs for the steps of a chain whose stages are the layers. Operators that are always recomputed (all-gathers of sequence parallelism)
// run again before the backward that reads them, unless the layer's forward ran just before. Forwards whose results no run reads are left
// out.
StageRuns runs_of_chain(const StageLayers& layers, const std::vector<RecomputeStep>& steps);

// The operators of a layer as a graph for recompute_graph.h. Nodes in this order: forwards (each together with the in-place sums of its
// result); the turn, a node that stands for all other layers between this layer's forward and backward, larger than all other nodes
// together, so that the peak is there; backwards of the operators that saved a value.
struct LayerNodes {
  std::vector<RecomputeNode> nodes = {};   // their `bytes` are multiples of `unit`
  std::vector<std::vector<int>> ops = {};  // [node]: its operators; none for the turn
  int turn = 0;                            // index of that node
  double unit = 1;                         // bytes
};
// `seconds`: [operator], of its forward.
LayerNodes nodes_of(const LayerGraph& layer, const std::vector<double>& seconds);
// Bytes that the layer keeps between its forward and its backward, without its input.
double kept_bytes(const LayerNodes& nodes, const GraphSchedule& schedule);
// The runs of a stage. `nodes`, `schedules`: one for each layer.
StageRuns runs_of_graphs(const StageLayers& layers, const std::vector<const LayerNodes*>& nodes,
                         const std::vector<const GraphSchedule*>& schedules);

// A lifetime of a value. One value has several if it is recomputed.
struct ValueLife {
  int layer = 0, value = 0;  // the layer that computes it, and its index there; for the stage's input: layer 0
  int from = 0, to = 0;      // runs: the one that computes it (-1: it is the stage's input), and the last one that reads it
  bool operator==(const ValueLife&) const = default;
};
struct RunLives {
  std::vector<ValueLife> all = {};
  std::vector<std::vector<int>> made = {};   // [run]: indices into `all` of the operator's outputs, in their order
  std::vector<std::vector<int>> ended = {};  // [run]: indices into `all` of the lifetimes that end with it
  std::vector<char> again = {};              // [run]: whether it is a recomputation of an operator
};
// `same_as`: [layer][value], as KeepRule::same_as. The input of a layer is taken as the output of the layer before.
RunLives lives_of(const StageLayers& layers, const std::vector<std::vector<int>>& same_as, const StageRuns& stage);

}  // namespace foreshard
