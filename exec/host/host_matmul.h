// Sizes and operands of a linear layer, y [m, n] = x [m, k] w [n, k]^T (+ bias). The columns of y may be divided over several operands, its
// parts. Used by exec/host and exec/cuda_ops.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "exec/host/host_kernel.h"

namespace foreshard::host {

struct LinearSizes {
  std::int64_t m = 0, n = 0, k = 0;
  std::vector<std::int64_t> columns = {};  // of each part of y, n in all
  bool first_token = false;                // x has more rows than m: those of later positions follow
  bool eight_bits = false;                 // the factors of its products are rounded to 8 bits
};
LinearSizes linear_sizes(const Form& form);  // throws Error unless the parts have n columns together

// All throw Error unless the operands have the sizes that their phase needs.
//
//   forward              x, w [, bias]                              -> parts of y
//   gradient of x        parts of dy, [x,] w [, bias]               -> dx    (x and the bias are not read)
//   gradient of weights  parts of dy, x                             -> dw [, dbias]
struct LinearInputGrad {
  std::size_t parts = 0, weight = 0;  // operands: how many are parts of dy, and which one is w
};
bool expect_linear_forward(const Form& form, const LinearSizes& sizes);  // whether there is a bias
LinearInputGrad expect_linear_input_grad(const Form& form, const LinearSizes& sizes);
bool expect_linear_weight_grad(const Form& form, const LinearSizes& sizes);  // whether there is a bias

}  // namespace foreshard::host
