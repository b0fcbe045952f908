// The values of a stage that wait for the backward as a job of the planners of strategy/residency/tensor_offload.h, and their answer as
// rows of the ActivationPolicy. The operators of the job are those of the stage, forward and then backward:
//
//   number    0 1 ... n-1 | n ... 2n-1        the backward of operator i has the number 2n-1-i
#pragma once

#include <vector>

#include "strategy/residency/tensor_offload.h"
#include "strategy/resolve/tables.h"

namespace foreshard {

struct HeldValues {
  std::vector<ValueMove::At> operators = {};  // [number of the forward]
  std::vector<ValueMove> values = {};         // where and when they go is not said yet
  TensorJob job = {};                         // tensors: the values; operations without times

  int backward_of(int op) const { return 2 * static_cast<int>(operators.size()) - 1 - op; }
};

// What the stage receives and sends stays in its rings and is no value here. `policy` says what runs again.
HeldValues held_values(const OpGraph& graph, const StageLayout& layers, const ActivationPolicy& policy, int stage);

// The planner's choice for these values. A copy out ends within the forward: one that the planner ends later is waited for there.
std::vector<ValueMove> moves_of(const HeldValues& held, const TensorPlan& plan, Space home);

}  // namespace foreshard
