// What a stage runs for one micro-batch under a recomputation schedule, operator by operator, and how long every value lives then.
// Chains (Rotor, Revolve) and graphs of operators come down to the same list. Internal to strategy/.
//
//   forward   F0 F1 F2 F3                                     each operator once, or again where a graph's schedule says so
//   backward               B3 | F1 F2 B2 | F1 B1 | B0         backwards from the last to the first, forwards again between them
//
// A value lives from the run that makes it to the last one that reads it before it is made again: what a schedule keeps follows
// from its order.
#pragma once

#include <vector>

#include "core/graph/op_graph.h"
#include "strategy/recompute/recompute_chain.h"
#include "strategy/recompute/recompute_graph.h"

namespace foreshard {

struct OpRun {
  int layer = 0, op = 0;  // of the stage, of the layer
  bool backward = false;
  bool operator==(const OpRun&) const = default;
};

struct StageRuns {
  std::vector<OpRun> runs = {};  // identity communications do not run forward
  int turn = 0;                  // index of the first run that belongs to the micro-batch's backward
  bool operator==(const StageRuns&) const = default;
};

using StageLayers = std::vector<const LayerGraph*>;

// Whole layers in the order of a chain's steps. Gathers that are always redone run again before the backward that reads them,
// except where it follows at once.
StageRuns runs_of_chain(const StageLayers& layers, const std::vector<RecomputeStep>& steps);

// The operators of a layer as a graph for recompute_graph.h: forwards (with the sums in place behind them), the turn, which
// stands for all other layers and outweighs everything, backwards of those that saved something.
struct LayerNodes {
  std::vector<RecomputeNode> nodes = {};   // bytes in units
  std::vector<std::vector<int>> ops = {};  // [node]: operators; of the turn: none
  int turn = 0;
  double unit = 1;  // bytes
};
// `seconds`: [operator], forward.
LayerNodes nodes_of(const LayerGraph& layer, const std::vector<double>& seconds);
// What a layer keeps between its forward and its backward beside its input, bytes.
double kept_bytes(const LayerNodes& nodes, const GraphSchedule& schedule);
// One schedule for each layer.
StageRuns runs_of_graphs(const StageLayers& layers, const std::vector<const LayerNodes*>& nodes,
                         const std::vector<const GraphSchedule*>& schedules);

struct ValueLife {
  int layer = 0, value = 0;  // by the name under which its maker knows it; the stage's input: layer 0
  int from = 0, to = 0;      // runs; from -1: comes with the micro-batch
  bool operator==(const ValueLife&) const = default;
};
struct RunLives {
  std::vector<ValueLife> all = {};
  std::vector<std::vector<int>> made = {};   // [run]: lives of the operator's outputs, in their order
  std::vector<std::vector<int>> ended = {};  // [run]
  std::vector<char> again = {};              // [run]: a forward that ran before
};
// `same_as`: [layer][value], as in KeepRule. The input of a layer is the output of the one before.
RunLives lives_of(const StageLayers& layers, const std::vector<std::vector<int>>& same_as, const StageRuns& stage);

}  // namespace foreshard
