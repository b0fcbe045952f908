// Builds the layers of decoder and encoder transformers. Used only by the op_graph_*.cpp files.
#pragma once

#include <cstdint>
#include <functional>

#include "core/graph/op_graph_builder.h"

namespace foreshard {

// Sizes of one rank. They are checked: cp (2 cp if causal) divides the sequence; tp divides heads, ffn and the padded vocabulary.
struct LocalTransformer {
  const Transformer& model;
  const Sharding& sharding;
  SequenceSplit split = {};  // of the sequence over cp
  std::int64_t batch = 1;    // sequences of a micro-batch
  std::int64_t seq = 0;      // tokens of a sequence on this context-parallel rank
  std::int64_t part = 0;     // tokens outside the tensor-parallel regions: seq / tp with sequence parallelism, else seq
  std::int64_t heads = 0, kv_heads = 0;
  std::int64_t vocab = 0;  // padded, all ranks
};

// Throws Error if the model cannot be cut in this way.
LocalTransformer local_transformer(const Transformer& model, const Sharding& sharding);

std::int64_t padded_vocab(const Transformer& model, std::int64_t multiple);

// Adds the attention of a layer, from x to its context, and returns the context; the output projection is not part of it. `local`: the
// layer attends to a window or a chunk. x lies outside the tensor-parallel regions; `shared`: other operators read it, too.
int attend(LayerBuilder& layer, const LocalTransformer& t, int x, bool local, bool shared);
std::int64_t context_width(const Transformer& model);  // elements of a context row, all heads of all ranks
// Throws Error if the attention cannot be cut in this way, or needs another kernel.
void check_attention(const Transformer& model, const Sharding& sharding);

// The routed experts of a layer on one rank.
struct Mixture {
  std::int64_t hidden = 0, width = 0;     // features of a token; of an expert's MLP
  std::int64_t experts = 0, chosen = 0;   // experts of the layer; experts that a token chooses
  std::int64_t room = 0;                  // rows that may be sent to each rank (core/op/experts.h)
  std::int64_t parts = 1, part_room = 0;  // parts of the group to which a token is sent once; rows that may be sent to each
  std::int64_t capacity = 0;              // rows that may be sent to one expert; 0: no limit
  std::int64_t expected = 0;              // rows that the most loaded rank's experts compute
  double others = 1;                      // mean rows of the other ranks / expected
  ActivationKind activation = ActivationKind::SwiGlu;
  ops::Route route = {};
  bool router_bias = false, biases = false, scaled_inputs = false;
  std::string residual_init = {};
};

// Throws Error if the experts cannot be cut in this way. `mixture`: the layer, among those with experts.
Mixture mixture_of(const LocalTransformer& t, const std::string& residual_init, int mixture);
// Adds the routed experts (core/op/experts.h) from the rows of x to their result, which it returns. It calls `meanwhile` after it has
// added the all-to-all that sends rows to the experts: operators that `meanwhile` adds do not read those rows and can overlap it.
int experts(LayerBuilder& layer, const LocalTransformer& t, const Mixture& what, int x, const std::function<void()>& meanwhile);

// The values of a token's choices: weights [.., k] and experts [.., k] of ops::Route.
struct RouterResults {
  int weights = -1, experts = -1;
};
// The rows of a rank's experts, [sources, room, h] (with etp [etp, sources, room, h]) and their counts. combine_tokens needs the others.
struct SentRows {
  int rows = -1, counts = -1;
  int places = -1, weights = -1;  // of each choice: its row (ops::Dispatch), its weight
  int once = -1;                  // of each token: its row in each part (ops::SendOnce); -1: another dispatcher
};
// Adds what brings tokens x to their experts, as the dispatcher's row says, and what brings the results y of the rows back to x.
SentRows dispatch_tokens(LayerBuilder& layer, const LocalTransformer& t, const Mixture& what, int x,
                         const RouterResults& choices);
int combine_tokens(LayerBuilder& layer, const LocalTransformer& t, const Mixture& what, const SentRows& sent, int y,
                   const Dims& dims);
void check_experts(const Transformer& model, const Sharding& sharding);
int mixtures_of(const Transformer& model);  // layers with experts, without modules for multi-token prediction

LayerGraph embedding_layer(const LocalTransformer& t);

// How the layers of one model differ.
struct LayerVariant {
  bool local = false;    // attends to a window or a chunk (attends_locally)
  bool experts = false;  // a mixture of experts in place of the MLP
  bool lowest = false;   // nothing below it is trained: its input has no gradient
  int mixture = 0;       // whose loads it has: a layer, among those with experts; 0 unless loads are measured
  auto operator<=>(const LayerVariant&) const = default;
};
// Adds attention and MLP with their norms and residual sums; returns the output value.
int transformer_block(LayerBuilder& layer, const LocalTransformer& t, int x, const LayerVariant& variant);
LayerGraph transformer_layer(const LocalTransformer& t, const std::string& kind, const LayerVariant& variant);
LayerGraph head_layer(const LocalTransformer& t);

}  // namespace foreshard
