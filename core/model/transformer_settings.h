// Settings of transformers beyond plain attention and a dense MLP: latent attention, masks, mixtures of experts. The defaults switch all
// of it off. Symbols in brackets are those of the papers. All sizes in elements.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

namespace foreshard {

// Multi-head latent attention (DeepSeek-V2, arXiv:2405.04434, section 2.1): queries, keys and values are projected from
// narrow latents.
struct LatentAttention {
  std::int64_t query_rank = 0;      // [rq]; 0: queries are projected from the hidden state
  std::int64_t key_value_rank = 0;  // [rkv]; 0: no latent attention
  std::int64_t plain_dim = 0;       // [dn] the part of a query or key head without positions
  std::int64_t rotated_dim = 0;     // [dr] the part with rotary positions; all key heads share one
  std::int64_t value_dim = 0;       // [dv] of a value head
  bool operator==(const LatentAttention&) const = default;
};

// Norms of queries and keys: over each head, with a weight of the head's size (Qwen3, Gemma 3), over all heads at once, with a
// weight of their width (OLMo 2, MiniMax-M2), or over each head without weights (Llama 4).
enum class QkNorm : std::uint8_t { None, PerHead, AllHeads, Unweighted };

struct AttentionSettings {
  double rope_theta = 10000.0;
  double local_rope_theta = 0;   // in layers that attend locally; 0: rope_theta
  double rope_scale = 1;         // multiplies the rotated elements: YaRN's attention factor (arXiv:2309.00071, section 3.4)
  std::int64_t rotated_dim = 0;  // the leading elements of a head that rotary positions rotate; 0: all
  bool full_unrotated = false;   // layers that do not attend locally have no positions (Llama 4)
  LatentAttention latent = {};
  QkNorm qk_norm = QkNorm::None;
  double scale = 0;      // of the scores; 0: 1 / sqrt(size of a query head)
  double score_cap = 0;  // scores become cap tanh(score / cap) (Gemma 2); 0: no cap
  bool sinks = false;    // a learned logit per head joins the softmax (gpt-oss)
  // Keys that a query sees in layers that attend locally, its own position included; 0: no window.
  std::int64_t window = 0;
  // Or the length of chunks in tokens: a query sees only keys of its chunk (Llama 4); 0: no chunks.
  std::int64_t chunk = 0;
  std::vector<bool> local = {};  // [layer]: attends locally; empty: all layers do if there is a window or a chunk
  bool operator==(const AttentionSettings&) const = default;
};

// How the router scores: a softmax over all experts, a softmax over the chosen ones, or a sigmoid of each logit.
enum class RouterScore : std::uint8_t { Softmax, SoftmaxOfChosen, Sigmoid };

// A mixture of experts in place of the dense MLP. Each expert is an MLP of the same kind.
struct Experts {
  std::int64_t count = 0;         // [E] routed experts of a layer; 0: no mixture
  std::int64_t chosen = 0;        // [k] experts that a token chooses
  std::int64_t width = 0;         // [fe] hidden features of one expert
  std::int64_t shared_width = 0;  // [fs] hidden features of the shared experts, which all tokens use, taken as one MLP; 0: none
  std::vector<bool> layers = {};  // [layer]: has a mixture; empty: all layers
  RouterScore score = RouterScore::Softmax;
  bool renormalised = false;       // the chosen experts' weights are divided by their sum
  double scale = 1;                // multiplies the chosen experts' weights
  std::int64_t groups = 1;         // the experts form this number of equal groups
  std::int64_t chosen_groups = 1;  // a token chooses experts only from this number of best groups
  std::int64_t best_of_group = 1;  // the score of a group is the sum of this number of its best scores
  // A bias per expert that affects only the choice and is not trained by gradients (arXiv:2408.15664).
  bool correction_bias = false;
  double bias_speed = 0.001;   // by which a step changes the correction bias; 0: it stays 0
  bool router_bias = false;    // a trained bias of the router's logits
  bool biases = false;         // biases of the experts' linear layers
  bool scaled_inputs = false;  // weights multiply the experts' inputs, not their outputs (Llama 4)
  double auxiliary_loss = 0;   // coefficient of the load-balancing loss
  double z_loss = 0;           // coefficient of the router's z-loss
  bool operator==(const Experts&) const = default;
};

// Constant factors (Gemma, Granite).
struct ValueScales {
  double embedding = 1;  // of the token embedding
  double residual = 1;   // of what a block adds to the residual stream
  double logits = 1;
  double logit_cap = 0;  // logits become cap tanh(logit / cap); 0: no cap
  bool operator==(const ValueScales&) const = default;
};

// The block around attention and MLP.
struct BlockSettings {
  double norm_eps = 1e-5;
  bool input_norms = true;        // norms before attention and MLP
  bool branch_norms = false;      // norms of their results before the residual sum (OLMo 2; with input_norms: Gemma)
  bool norms_around_one = false;  // a norm multiplies by 1 + weight (Gemma)
  Experts experts = {};
  ValueScales scales = {};
  int mtp_modules = 0;  // multi-token prediction (DeepSeek-V3, arXiv:2412.19437, section 2.2): each is one more layer
  bool operator==(const BlockSettings&) const = default;
};

}  // namespace foreshard
