// Bytes of one layer and micro-batch on one rank, as a training framework's allocator holds them (docs/memory.md).
#pragma once

#include "core/graph/op_graph.h"
#include "core/strategy/strategy.h"
#include "strategy/cost/memory_traits.h"

namespace foreshard {

struct LayerBytes {
  double kept = 0;  // from its forward to its backward
  double left = 0;  // of the products with weights: inputs and gradients of the results, what a weight gradient put off needs
  double backward = 0;  // beside that, while its backward runs: values made again, gradients
  double loss = 0;      // of the head: beside everything that is kept, when the loss is computed
  double held = 0;      // of the head: and while the layers before it run backward
  double deferred = 0;  // of the head: its input and the gradient of its result
};

// `copies`: the attention's result is kept twice (MemoryTraits::attention_copies); `full`: the layer is recomputed as a whole.
LayerBytes layer_bytes(const LayerGraph& layer, const Strategy& strategy, const MemoryTraits& traits, bool copies, bool full);

inline double size(const Value& value) { return static_cast<double>(value.bytes.value); }                          // bytes
inline double count(const Value& value) { return size(value) / static_cast<double>(size_of(value.dtype).value); }  // elements
double parameter_elements(const Parameter& parameter);  // on this rank

// A matrix product with weights of its own.
bool is_weight_product(const Operator& op);

}  // namespace foreshard
