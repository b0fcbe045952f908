// Rotary position embedding (Su et al. 2021): rotates the query and key heads of x and copies the rest.
// Shapes: dimensions of x.
#pragma once

#include "core/op/op.h"
#include "core/op/sequence_part.h"

namespace foreshard::ops {

// `heads` and `kv_heads` are the query and key heads in x. If queries and keys are two values, each has its own Rope, with 0 for the other.
struct Rope : OperatorTraits {
  std::int64_t heads = 0, kv_heads = 0, dim = 0;  // dim: elements of a head
  double theta = 10000;
  SequenceSplit split = {};  // how context-parallel ranks share the positions of the rows
  std::int64_t rotated = 0;  // the first elements of each head that are rotated; 0: all
  bool last = false;         // the last elements are rotated instead of the first
  double scale = 1;          // multiplies the rotated elements

  std::int64_t rotated_dim() const { return rotated > 0 ? rotated : dim; }

  static constexpr const char* kWord = "rope";
  static constexpr int kFirstSettings = 6;
  template <class Self, class Visit>
  static void fields(Self& self, Visit&& visit) {
    visit("heads", self.heads), visit("kv_heads", self.kv_heads), visit("dim", self.dim), visit("theta", self.theta);
    visit("cp", self.split.ranks), visit("chunks", self.split.chunks);
    visit("rotated", self.rotated), visit("last", self.last), visit("scale", self.scale);
  }
  static Saved saved() { return {}; }
  static Works works(const Sizes& sizes) {
    return {.forward = {{}, 2 * sizes.inputs[0]}, .input_grad = {{}, 2 * sizes.inputs[0]}};
  }
  static PartialSums partial_sums(Phase) { return {.pass = true}; }
  bool operator==(const Rope&) const = default;
};

}  // namespace foreshard::ops
