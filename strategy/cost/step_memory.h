// What a PyTorch framework allocates and frees in a training step: the "step" object in the "memory" object of frameworks/*.json. Where a
// framework has one, its memory is predicted by a replay of these allocations (strategy/frameworks/step_replay.h) instead of closed forms.
#pragma once

#include <string>
#include <vector>

#include "core/json/json.h"

namespace foreshard {

// Bytes per token of one tensor of a transformer layer, on all tensor-parallel ranks together: a sum of widths. Written as text:
// "6 hidden", "2 query + 4 keys".
struct TensorWidth {
  double hidden = 0;  // bytes per element of the hidden size
  double query = 0;   // of all query heads together
  double keys = 0;    // of the keys of all heads together; values have the same size
  double ffn = 0;     // of the hidden size of the MLP
  double heads = 0;   // bytes per query head
  bool operator==(const TensorWidth&) const = default;
};

struct StepMemory {
  // The name of the rules by which states, gradients and gathered parameters are allocated (strategy/frameworks/step_rules.h).
  std::string rules = {};
  // Tensors that a layer keeps from its forward to its backward: without recomputation, with recomputation of some operators, and with
  // recomputation of the whole layer.
  std::vector<TensorWidth> kept = {}, kept_selective = {}, kept_full = {};
  std::vector<TensorWidth> kept_head = {};  // the same of the layer with the final norm and the head
  // Results of row-parallel products that stay allocated during the forward, because a collective on another stream has used them.
  std::vector<TensorWidth> held_by_collectives = {};
  // Buffers for gathered activations that stay allocated for good, under tensor parallelism.
  std::vector<TensorWidth> gather_buffers = {};
  bool operator==(const StepMemory&) const = default;
};

StepMemory read_step_memory(const JsonReader& json);  // throws Error

}  // namespace foreshard
