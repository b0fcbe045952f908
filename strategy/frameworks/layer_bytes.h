// Bytes of activations and gradients of one layer and one micro-batch on one rank, as a training framework allocates them (docs/memory.md).
#pragma once

#include "core/graph/op_graph.h"
#include "core/strategy/strategy.h"
#include "strategy/cost/memory_traits.h"

namespace foreshard {

// All in bytes.
struct LayerBytes {
  double kept = 0;  // activations kept from its forward to its backward
  // Kept for deferred weight gradients: inputs of the products with weights, and gradients of their results.
  double left = 0;
  double backward = 0;  // needed beside `kept` while its backward runs: recomputed activations, and gradients of activations
  // Of `left`, what a backward of input gradients still holds, and an unsplit backward has freed, when the operator at which `backward` is
  // reached runs: inputs and gradients of results of the products that come before it in the backward.
  double waiting = 0;
  double loss = 0;      // of the head: needed beside all kept activations while the loss is computed
  double held = 0;      // of the head: allocated while the layers before it run backward
  double deferred = 0;  // of the head: its input and the gradient of the logits, kept for a deferred weight gradient
};

// `copies`: two copies of the attention's result are kept (MemoryTraits::attention_copies). `full`: full recomputation covers the layer.
LayerBytes layer_bytes(const LayerGraph& layer, const Strategy& strategy, const MemoryTraits& traits, bool copies, bool full);

inline double size(const Value& value) { return static_cast<double>(value.bytes.value); }                          // bytes
inline double count(const Value& value) { return size(value) / static_cast<double>(size_of(value.dtype).value); }  // elements
double parameter_elements(const Parameter& parameter);  // on this rank

// Whether it is a matrix product whose second operand is a parameter.
bool is_weight_product(const Operator& op);

}  // namespace foreshard
