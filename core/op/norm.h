// LayerNorm (weight [h], bias [h]) and RMSNorm (weight [h]) over the last dimension; shapes {rows, h}. Statistics are not kept:
// the backward computes them again from the input, in the same pass.
#pragma once

#include "core/model/model.h"
#include "core/op/op.h"

namespace foreshard::ops {

struct Norm : Laws {
  NormKind kind = NormKind::LayerNorm;
  double eps = 1e-5;

  static constexpr const char* kWord = "norm";
  template <class Self, class Visit>
  static void fields(Self& self, Visit&& visit) {
    visit("kind", self.kind), visit("eps", self.eps);
  }
  static Saved saved() { return {.inputs = kFirst}; }
  static Works works(const Sizes& sizes) {
    return {.forward = {{}, 2 * sizes.inputs[0]}, .input_grad = {{}, 3 * sizes.inputs[0]}};
  }
  bool operator==(const Norm&) const = default;
};

// Over the samples and pixels of each channel: shapes {n, c, h, w}, weight [c], bias [c].
struct BatchNorm : Laws {
  double eps = 1e-5;

  static constexpr const char* kWord = "batch_norm";
  template <class Self, class Visit>
  static void fields(Self& self, Visit&& visit) {
    visit("eps", self.eps);
  }
  static Saved saved() { return {.inputs = kFirst}; }
  // Forward: once for the statistics, once to apply them. Backward: x and the gradient twice, the result once.
  static Works works(const Sizes& sizes) {
    return {.forward = {{}, 3 * sizes.inputs[0]}, .input_grad = {{}, 5 * sizes.inputs[0]}};
  }
  bool operator==(const BatchNorm&) const = default;
};

}  // namespace foreshard::ops
