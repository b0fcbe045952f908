// Attention, softmax(q k^T / sqrt(dim)) v: in one kernel that never writes the scores (Dao et al. 2022), or as its parts.
// Query head i reads key head i / (heads / kv_heads). Operands come as one value qkv, or as q and kv.
#pragma once

#include "core/op/op.h"
#include "core/op/sequence_part.h"

namespace foreshard::ops {

// qkv (or q, kv) -> context [b, queries, heads value_dim], lse (statistics [b, heads, queries]); shapes {b, queries, heads, dim},
// {b, keys, kv_heads, dim}. FLOPs are of all pairs of a query and a key, whatever the masks, and scores that the backward computes again
// are not counted. With sinks: a weight [heads], a logit of each head that joins its softmax and stands for no value; it is in the lse.
struct Attention : Laws {
  bool causal = false;
  std::int64_t heads = 1, kv_heads = 1, dim = 0;
  SequenceSplit split =
      {};  // over context-parallel ranks: queries are those of this rank, keys of all, one rank after the other
  int blocks = 1, block = 0;  // ring: keys are one of as many blocks as ranks, that of the rank `block` places before this one
  double p = 0;               // dropout of the probabilities
  std::int64_t site = 0;      // place of the dropout within the layer: part of the mask's key
  double scale = 0;           // of the scores; 0: 1 / sqrt(dim)
  double score_cap = 0;       // scores s become cap tanh(s / cap); 0: they stay
  std::int64_t window = 0;    // keys that a query of a causal map sees at most, its own among them; 0: all before it
  std::int64_t chunk = 0;     // or: it sees no key before its chunk of so many positions; 0: no chunks
  bool sinks = false;
  std::int64_t value_dim = 0;  // of a value head; 0: dim

  std::int64_t values() const { return value_dim > 0 ? value_dim : dim; }
  // The first position that a query sees.
  std::int64_t first_key(std::int64_t query) const {
    if (chunk > 0) return query / chunk * chunk;
    return window > 0 && query >= window ? query - window + 1 : 0;
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

// The parts of unfused attention keep the 5 a s^2 b bytes of Korthikanti et al. 2022, section 4.

// A product of two activations, which makes both gradients in one phase:
//   Scores          q k^T -> [b, heads, queries, keys]; shapes {b heads, queries, keys, dim}
//   WeightedValues  probabilities [b, heads, queries, keys], and qkv or kv -> context; shapes {b heads, queries, dim, keys}
template <bool of_scores>
struct HeadProduct : Laws {
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
    const std::size_t keys = of_scores ? 2 : 3, width = of_scores ? 3 : 2;  // places in the shape
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

// Masks and softmax over the rows of the scores; shapes {rows, keys}.
struct Softmax : Laws {
  bool causal = false;
  double scale = 1;          // of the scores, before the softmax
  SequenceSplit split = {};  // rows are queries of this context-parallel rank, columns the keys of all

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
