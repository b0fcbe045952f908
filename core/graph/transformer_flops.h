// Model FLOPs of a transformer in closed form: what the mathematics needs, whatever the kernels execute.
#pragma once

#include <cstdint>

#include "core/base/units.h"
#include "core/model/model.h"

namespace foreshard {

// FLOPs of one sample (a sequence), forward + backward: three times the forward.
struct TransformerFlops {
  Flops products = {};      // products of activations with weights; of the experts only the chosen ones
  Flops core = {};          // attention: scores and weighted values, over all pairs of a query and a key
  Flops core_in_mask = {};  // the same over the pairs that the masks allow
};
TransformerFlops transformer_flops(const Transformer& t, std::int64_t seq, std::int64_t vocab_multiple = 1);

// The number of pairs of a query and a key that it sees, for one sample in one layer: the full square, the lower triangle under a causal
// mask, a band of the window's width, or one triangle per chunk.
double attention_pairs(const Transformer& t, int layer, std::int64_t seq);

}  // namespace foreshard
