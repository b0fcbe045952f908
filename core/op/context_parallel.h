// Operators that context parallelism adds to attention (docs/operators.md): MergeAttention combines results over different keys, HeadParts
// rearranges heads for an all-to-all.
#pragma once

#include "core/op/op.h"

namespace foreshard {

// How context-parallel ranks exchange keys and values: they gather all of them, send them around a ring, or exchange heads (Ulysses).
enum class ContextKind : std::uint8_t { AllGather, Ring, AllToAll };

namespace ops {

// context, lse, context, lse -> context, lse: attention over two disjoint sets of keys becomes attention over both. Each context has the
// weight e^(its lse - the new lse). Shapes {b, queries, heads, dim}. The gradient passes to both inputs unchanged, because the backward of
// each Attention reads the merged context and lse.
struct MergeAttention : OperatorTraits {
  static constexpr const char* kWord = "merge_attention";
  template <class Self, class Visit>
  static void fields(Self&, Visit&&) {}
  static Saved saved() { return {}; }
  static Works works(const Sizes& sizes) {
    Bytes bytes = sizes.outputs[0] + sizes.outputs[1];
    for (const Bytes part : sizes.inputs) bytes += part;
    return {.forward = {{}, bytes}};
  }
  bool operator==(const MergeAttention&) const = default;
};

// Arranges heads for an all-to-all. Rows [position, sample] of x hold the query, key and value heads [heads | kv_heads | kv_heads] of `dim`
// elements each; y holds `parts` such arrays one after the other, each with its part of the heads. `join`: the inverse. Shapes: dimensions
// of x.
struct HeadParts : OperatorTraits {
  int parts = 1;
  std::int64_t heads = 1, kv_heads = 0, dim = 0;  // all parts together
  bool join = false;

  static constexpr const char* kWord = "head_parts";
  template <class Self, class Visit>
  static void fields(Self& self, Visit&& visit) {
    visit("parts", self.parts), visit("heads", self.heads), visit("kv_heads", self.kv_heads), visit("dim", self.dim);
    visit("join", self.join);
  }
  static Saved saved() { return {}; }
  static Works works(const Sizes& sizes) {
    return {.forward = {{}, 2 * sizes.inputs[0]}, .input_grad = {{}, 2 * sizes.inputs[0]}};
  }
  bool operator==(const HeadParts&) const = default;
};

}  // namespace ops
}  // namespace foreshard
