// Norms. LayerNorm (weight [h], bias [h]) and RMSNorm (weight [h]) are over the last dimension, with shapes {rows, h}. Statistics are not
// saved: the backward computes them again from the input, in the same pass.
#pragma once

#include "core/model/model.h"
#include "core/op/op.h"

namespace foreshard::ops {

struct Norm : OperatorTraits {
  NormKind kind = NormKind::LayerNorm;
  double eps = 1e-5;
  bool around_one = false;  // the factor is 1 + weight

  static constexpr const char* kWord = "norm";
  static constexpr int kFirstSettings = 2;
  template <class Self, class Visit>
  static void fields(Self& self, Visit&& visit) {
    visit("kind", self.kind), visit("eps", self.eps), visit("around_one", self.around_one);
  }
  static Saved saved() { return {.inputs = kFirst}; }
  static Works works(const Sizes& sizes) {
    return {.forward = {{}, 2 * sizes.inputs[0]}, .input_grad = {{}, 3 * sizes.inputs[0]}};
  }
  bool operator==(const Norm&) const = default;
};

// RMSNorm of query and key heads. Inputs: rows [heads | kv_heads] of `dim` elements per head, and, if there are key heads, rows of their
// values, which are copied. Output: rows [heads | kv_heads | values]. Weights: one of the queries and one of the keys, if there are such
// heads; PerHead: [dim], the same for every head; AllHeads (the mean is over all heads at once): [heads dim], [kv_heads dim]; Unweighted:
// none. Shapes: dimensions of the first input.
struct HeadNorm : OperatorTraits {
  QkNorm over = QkNorm::PerHead;
  std::int64_t heads = 0, kv_heads = 0, dim = 0;
  double eps = 1e-5;
  bool around_one = false;  // the factors are 1 + weight

  static constexpr const char* kWord = "head_norm";
  template <class Self, class Visit>
  static void fields(Self& self, Visit&& visit) {
    visit("over", self.over), visit("heads", self.heads), visit("kv_heads", self.kv_heads), visit("dim", self.dim);
    visit("eps", self.eps), visit("around_one", self.around_one);
  }
  static Saved saved() { return {.inputs = kFirst}; }
  static Works works(const Sizes& sizes) {
    const Bytes values = sizes.inputs.size() > 1 ? 2 * sizes.inputs[1] : Bytes{};
    return {.forward = {{}, 2 * sizes.inputs[0] + values}, .input_grad = {{}, 3 * sizes.inputs[0] + values}};
  }
  int gradients() const { return kv_heads > 0 ? 2 : 1; }
  PartialSums partial_sums(Phase) const { return {.shared_weights = over == QkNorm::PerHead}; }
  bool operator==(const HeadNorm&) const = default;
};

// Norm of each channel over samples and pixels. Shapes {n, c, h, w}; weight [c], bias [c].
struct BatchNorm : OperatorTraits {
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
