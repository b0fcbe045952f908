// The layers of decoder and encoder transformers. Used only by the op_graph_*.cpp files.
#pragma once

#include <cstdint>
#include <functional>

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

// The routed experts of a layer on one rank.
struct Mixture {
  std::int64_t hidden = 0, width = 0;    // of an expert
  std::int64_t experts = 0, chosen = 0;  // of the layer, of a token
  std::int64_t room = 0;                 // rows for each rank
  std::int64_t capacity = 0;             // ... of one expert; 0: no limit
  std::int64_t expected = 0;             // rows that this rank's experts work on
  ActivationKind activation = ActivationKind::SwiGlu;
  ops::Route route = {};
  bool router_bias = false, biases = false, scaled_inputs = false;
  std::string residual_init = {};
};

// Throws Error for experts that cannot be cut so.
Mixture mixture_of(const LocalTransformer& t, const std::string& residual_init);
// What chosen experts make of the rows of x, and what becomes of them (core/op/experts.h). `meanwhile` adds what does not read them, while the
// rows are on their way to the experts.
int experts(LayerBuilder& layer, const LocalTransformer& t, const Mixture& what, int x, const std::function<void()>& meanwhile);
void check_experts(const Transformer& model, const Sharding& sharding);

LayerGraph embedding_layer(const LocalTransformer& t);

// What tells layers of one model apart.
struct LayerVariant {
  bool local = false;    // attends locally
  bool experts = false;  // a mixture of experts in place of the MLP
  auto operator<=>(const LayerVariant&) const = default;
};
int transformer_block(LayerBuilder& layer, const LocalTransformer& t, int x, const LayerVariant& variant);
LayerGraph transformer_layer(const LocalTransformer& t, const std::string& kind, const LayerVariant& variant);
LayerGraph head_layer(const LocalTransformer& t);

}  // namespace foreshard
