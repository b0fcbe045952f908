// Model FLOPs of a transformer in closed form: what the mathematics asks for, whatever a kernel executes.
#pragma once

#include <cstdint>

#include "core/base/units.h"
#include "core/model/model.h"

namespace foreshard {

// Of one sample, forward + backward (three times the forward).
struct TransformerFlops {
  Flops products = {};      // of weights with what each token brings; of the experts, those that it chooses
  Flops core = {};          // scores and their product with the values, over the full square of queries and keys
  Flops core_in_mask = {};  // the same over the pairs that the masks leave
};
TransformerFlops transformer_flops(const Transformer& t, std::int64_t seq, std::int64_t vocab_multiple = 1);

// Pairs of a query and a key that it sees, of one sample in that layer: the whole square, half of it under a causal mask, a band of
// the window's width, or the triangles of the chunks.
double attention_pairs(const Transformer& t, int layer, std::int64_t seq);

}  // namespace foreshard
