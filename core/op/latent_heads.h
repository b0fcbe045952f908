// Assembles key and value heads of multi-head latent attention (DeepSeek-V2, arXiv:2405.04434, section 2.1).
#pragma once

#include "core/op/op.h"

namespace foreshard::ops {

// Two inputs: rows [key parts without positions: heads x plain | values: heads x value], and rows [rotated] of the rotated key part that
// all heads share. Output: rows [keys: heads x (plain | rotated) | values: heads x value]. Shapes: dimensions of the first input.
struct LatentHeads : OperatorTraits {
  std::int64_t heads = 1, plain = 0, rotated = 0, value = 0;  // heads of this rank; elements of a head

  static constexpr const char* kWord = "latent_heads";
  template <class Self, class Visit>
  static void fields(Self& self, Visit&& visit) {
    visit("heads", self.heads), visit("plain", self.plain), visit("rotated", self.rotated), visit("value", self.value);
  }
  static Saved saved() { return {}; }
  static Works works(const Sizes& sizes) {
    const OpWork each = {{}, sizes.inputs[0] + sizes.inputs[1] + sizes.outputs[0]};
    return {.forward = each, .input_grad = each};
  }
  int gradients() const { return 2; }
  // The gradient of the shared part is a sum over the heads.
  PartialSums partial_sums(Phase phase) const {
    return is_input_grad(phase) ? PartialSums{.summed_columns = 1} : PartialSums{};
  }
  bool operator==(const LatentHeads&) const = default;
};

}  // namespace foreshard::ops
