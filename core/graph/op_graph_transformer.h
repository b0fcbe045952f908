// The layers of decoder and encoder transformers. Used only by the op_graph_*.cpp files.
#pragma once

#include <cstdint>

#include "core/graph/op_graph_builder.h"

namespace foreshard {

// Sizes of one rank, checked: seq splits over cp (in 2 cp chunks when causal), heads, ffn and vocabulary over tp.
struct LocalTransformer {
  const Transformer& model;
  const Sharding& sharding;
  SequenceSplit split = {};  // over cp
  std::int64_t batch = 1;
  std::int64_t seq = 0;   // of this context-parallel rank
  std::int64_t part = 0;  // of this rank outside the tensor-parallel regions: seq / tp under sequence parallelism
  std::int64_t heads = 0, kv_heads = 0;
  std::int64_t vocab = 0;  // padded, all ranks
};

// Throws Error when the model cannot be cut so.
LocalTransformer local_transformer(const Transformer& model, const Sharding& sharding);

std::int64_t padded_vocab(const Transformer& model, std::int64_t multiple);

// The context of a layer that attends locally or not. `x` lies outside the tensor-parallel regions; `shared`: others read it, too.
int attend(LayerBuilder& layer, const LocalTransformer& t, int x, bool local, bool shared);
std::int64_t context_width(const Transformer& model);  // of all heads
// Throws Error for attention that cannot be cut so.
void check_attention(const Transformer& model, const Sharding& sharding);

LayerGraph embedding_layer(const LocalTransformer& t);
LayerGraph transformer_layer(const LocalTransformer& t, const std::string& kind, bool local);  // pre-norm or post-norm
LayerGraph head_layer(const LocalTransformer& t);

}  // namespace foreshard
