// Turns the values that a stage keeps for its backward into a job for the planners of strategy/residency/tensor_offload.h, and their answer
// into rows of the ActivationPolicy. The operators of the job are those of the stage, forward and then backward:
//
//   number    0 1 ... n-1 | n ... 2n-1        the backward of operator i has the number 2n-1-i
#pragma once

#include <vector>

#include "strategy/residency/tensor_offload.h"
#include "strategy/resolve/tables.h"

namespace foreshard {

struct HeldValues {
  std::vector<ValueMove::At> operators = {};  // [number of the forward]
  std::vector<ValueMove> values = {};         // where and when they move is not set yet
  TensorJob job = {};                         // tensors: the values; operations without times

  int backward_of(int op) const { return 2 * static_cast<int>(operators.size()) - 1 - op; }
};

// What the stage receives and sends stays in its ring buffers and is left out. `policy` says what is recomputed.
HeldValues held_values(const OpGraph& graph, const StageLayout& layers, const ActivationPolicy& policy, int stage);

// The planner's choice for these values. A copy out ends within the forward: if the planner ends it later, computes after the forward wait
// for it.
std::vector<ValueMove> moves_of(const HeldValues& held, const TensorPlan& plan, Space home);

}  // namespace foreshard
