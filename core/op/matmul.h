// A linear layer, y = x w^T + bias: x [m, k], w [n, k], bias [n] or none. Shapes {1, m, n, k}. Several outputs are consecutive ranges of
// the columns of y.
#pragma once

#include "core/op/op.h"

namespace foreshard::ops {

struct MatMul : OperatorTraits {
  bool first_token = false;  // the rows of x are the first token of each sample

  static constexpr const char* kWord = "matmul";
  static constexpr bool matrix_product = true;
  template <class Self, class Visit>
  static void fields(Self& self, Visit&& visit) {
    visit("first_token", self.first_token);
  }
  static Saved saved() { return {.inputs = kFirst}; }
  static Works works(const Sizes& sizes) {
    const Flops flops = {2.0 * sizes.dim(0, 1) * sizes.dim(0, 2) * sizes.dim(0, 3)};
    const std::int64_t m = sizes.count(0, 1), n = sizes.count(0, 2), k = sizes.count(0, 3);
    const OpWork each = {flops, (m * k + m * n) * size_of(sizes.input) + n * k * size_of(sizes.param)};
    return {.forward = each, .input_grad = sizes.inputs_need_grad ? each : OpWork{}, .weight_grad = each};
  }
  static PartialSums partial_sums(Phase phase) {
    if (is_forward(phase)) return {.pass = true, .most_operands = 2, .summed_dim = 1, .new_columns = true};
    if (is_input_grad(phase)) return {.pass = true, .summed_dim = 0, .new_columns = true};
    return {.pass = true};
  }
  bool operator==(const MatMul&) const = default;
};

}  // namespace foreshard::ops
