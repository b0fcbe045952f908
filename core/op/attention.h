// Attention, softmax(q k^T / sqrt(dim)) v: as one kernel that never writes the scores to memory (Dao et al. 2022), or as separate
// operators. Query head i uses key head i / (heads / kv_heads). The operands are one value qkv, or two values q and kv.
#pragma once

#include "core/op/op.h"
#include "core/op/sequence_part.h"

namespace foreshard::ops {

// The number of pairs of a query and a key that it sees in a sequence: the full square, the lower triangle under a causal mask, with it a band of
// the window's width or one triangle for each chunk (0: none).
inline double pairs_in_mask(std::int64_t seq, bool causal, std::int64_t window, std::int64_t chunk) {
  const auto triangle = [](std::int64_t n) { return static_cast<double>(n) * static_cast<double>(n + 1) / 2; };
  const auto s = static_cast<double>(seq);
  if (!causal) return s * s;
  if (chunk > 0) return static_cast<double>(seq / chunk) * triangle(chunk) + triangle(seq % chunk);
  if (window <= 0 || window >= seq) return triangle(seq);
  return s * static_cast<double>(window) - triangle(window - 1);
}

// Fused attention: qkv (or q, kv) -> context [b, queries, heads value_dim], lse [b, heads, queries] (log-sum-exp of the scores, in the
// format of statistics). Shapes {b, queries, heads, dim}, {b, keys, kv_heads, dim}. FLOPs count all pairs of a query and a key, whatever
// the mask, and do not count the scores that the backward computes again. With sinks there is a weight [heads]: a logit per head that
// joins the softmax, and so the lse, but has no value.
struct Attention : OperatorTraits {
  bool causal = false;
  std::int64_t heads = 1, kv_heads = 1, dim = 0;
  SequenceSplit split =
      {};  // context parallelism: the queries are those of this rank, the keys those of all ranks, one rank after the other
  int blocks = 1, block = 0;   // ring: the keys are those of one of `blocks` ranks, `block` places before this one
  double p = 0;                // dropout probability of the attention probabilities
  std::int64_t site = 0;       // number of the dropout within the layer: part of the mask's random key
  double scale = 0;            // of the scores; 0: 1 / sqrt(dim)
  double score_cap = 0;        // scores s become cap tanh(s / cap); 0: no cap
  std::int64_t window = 0;     // causal: the most keys that a query sees, its own position included; 0: no limit
  std::int64_t chunk = 0;      // or: positions of a chunk; a query sees no key before its chunk; 0: no chunks
  bool sinks = false;          // has a learned logit per head
  std::int64_t value_dim = 0;  // elements of a value head; 0: dim

  std::int64_t values() const { return value_dim > 0 ? value_dim : dim; }
  // The first key position that the query at this position sees.
  std::int64_t first_key(std::int64_t query) const {
    if (chunk > 0) return query / chunk * chunk;
    return window > 0 && query >= window ? query - window + 1 : 0;
  }

  // The share of the FLOPs of `works` that are of pairs in the mask: a fused kernel computes no others. `keys`: as in the shapes. Of a sequence that
  // is split over ranks, the mean over its parts.
  double share_in_mask(std::int64_t keys) const {
    const std::int64_t all = keys * blocks;
    return pairs_in_mask(all, causal, window, chunk) / (static_cast<double>(all) * static_cast<double>(all));
  }

  static constexpr const char* kWord = "attention";
  static constexpr int kFirstSettings = 10;
  template <class Self, class Visit>
  static void fields(Self& self, Visit&& visit) {
    visit("causal", self.causal), visit("heads", self.heads), visit("kv_heads", self.kv_heads), visit("dim", self.dim);
    visit("cp", self.split.ranks), visit("p", self.p), visit("site", self.site), visit("chunks", self.split.chunks);
    visit("blocks", self.blocks), visit("block", self.block), visit("scale", self.scale);
    visit("score_cap", self.score_cap), visit("window", self.window), visit("chunk", self.chunk);
    visit("sinks", self.sinks), visit("value_dim", self.value_dim);
  }
  static Saved saved() { return {.inputs = kAll, .outputs = kAll}; }
  Works works(const Sizes& sizes) const {
    const double maps = static_cast<double>(sizes.count(0, 0) * sizes.count(0, 2));
    const double width = value_dim > 0 ? static_cast<double>(dim + value_dim) / 2 : sizes.dim(0, 3);  // mean of both products
    const double score = 2.0 * maps * sizes.dim(0, 1) * sizes.dim(1, 1) * width;
    Bytes in = {};
    for (const Bytes part : sizes.inputs) in += part;
    const Bytes out = sizes.outputs[0], lse = sizes.outputs[1];
    return {.forward = {{2 * score}, in + out + lse}, .input_grad = {{4 * score}, 2 * in + 2 * out + lse}};
  }
  bool operator==(const Attention&) const = default;
};

// The operators of unfused attention save the 5 a s^2 b bytes of Korthikanti et al. 2022, section 4.

// A product of two activations per head. One phase computes the gradients of both:
//   Scores          q k^T -> [b, heads, queries, keys]; shapes {b heads, queries, keys, dim}
//   WeightedValues  probabilities [b, heads, queries, keys], and qkv or kv -> context; shapes {b heads, queries, dim, keys}
template <bool of_scores>
struct HeadProduct : OperatorTraits {
  bool causal = false;
  std::int64_t heads = 1, kv_heads = 1, dim = 0;

  static constexpr const char* kWord = of_scores ? "scores" : "weighted_values";
  static constexpr bool matrix_product = true;
  template <class Self, class Visit>
  static void fields(Self& self, Visit&& visit) {
    visit("causal", self.causal), visit("heads", self.heads), visit("kv_heads", self.kv_heads), visit("dim", self.dim);
  }
  static Saved saved() { return {.inputs = kAll}; }
  Works works(const Sizes& sizes) const {
    const std::size_t keys = of_scores ? 2 : 3, width = of_scores ? 3 : 2;  // indices of the shape's dimensions
    const std::int64_t maps = sizes.count(0, 0), s = sizes.count(0, 1), t = sizes.count(0, keys), d = sizes.count(0, width);
    const Flops flops = {2.0 * sizes.dim(0, 0) * sizes.dim(0, 1) * sizes.dim(0, keys) * sizes.dim(0, width)};
    const Bytes q = maps * s * d * size_of(sizes.input), k = maps / heads * kv_heads * t * d * size_of(sizes.input);
    const Bytes map = of_scores ? sizes.outputs[0] : sizes.inputs[0];
    return {.forward = {flops, q + k + map}, .input_grad = {2 * flops, 2 * map + 2 * q + 2 * k}};
  }
  static PartialSums partial_sums(Phase) { return {.new_columns = true}; }
  bool operator==(const HeadProduct&) const = default;
};
using Scores = HeadProduct<true>;
using WeightedValues = HeadProduct<false>;

// Mask and softmax over each row of the scores. Shapes {rows, keys}.
struct Softmax : OperatorTraits {
  bool causal = false;
  double scale = 1;          // multiplies the scores before the softmax
  SequenceSplit split = {};  // rows are the queries of this context-parallel rank, columns the keys of all ranks

  static constexpr const char* kWord = "softmax";
  template <class Self, class Visit>
  static void fields(Self& self, Visit&& visit) {
    visit("causal", self.causal), visit("scale", self.scale), visit("cp", self.split.ranks);
    visit("chunks", self.split.chunks);
  }
  static Saved saved() { return {.outputs = kFirst}; }
  static Works works(const Sizes& sizes) {
    return {.forward = {{}, 2 * sizes.outputs[0]}, .input_grad = {{}, 3 * sizes.outputs[0]}};
  }
  bool operator==(const Softmax&) const = default;
};

}  // namespace foreshard::ops
