// Sizes and operands of a linear layer, y [m, n] = x [m, k] w [n, k]^T (+ bias), whose y may be divided by columns over several operands. Used
// by exec/host and exec/cuda_ops.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "exec/host/host_kernel.h"

namespace foreshard::host {

struct LinearSizes {
  std::int64_t m = 0, n = 0, k = 0;
  std::vector<std::int64_t> columns = {};  // of the parts of y, n in all
  bool first_token = false;                // x has more rows: those of the other positions follow
  bool eighth = false;                     // factors in 8 bits
};
LinearSizes linear_sizes(const Form& form);  // throws Error for parts that have not n columns together

// All throw Error unless the operands have the sizes that their phase wants.
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
