// What context parallelism adds to attention (docs/operators.md): merging parts of it that saw different keys, and dealing out heads.
#pragma once

#include "core/op/op.h"

namespace foreshard {

// How the queries of a context-parallel rank meet the keys of all.
enum class ContextKind : std::uint8_t { AllGather, Ring, AllToAll };

namespace ops {

// context, lse, context, lse -> context, lse of all their keys: each context weighs e^(its lse - the new lse). Shapes {b, queries, heads, dim}.
// The backward of each part reads the merged context and lse, so the gradient passes to both parts as it is.
struct MergeAttention : Laws {
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

// Rows [position, sample] of [heads | kv_heads | kv_heads], each of `dim` -> `parts` such arrays one after the other, each with its part of the heads:
// what an all-to-all sends. `join`: back again. Shapes: dimensions of x.
struct HeadParts : Laws {
  int parts = 1;
  std::int64_t heads = 1, kv_heads = 0, dim = 0;  // of all parts
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
