// Time of a matrix product from its shape and the GPU's datasheet, used where there is no measurement. docs/cost-model.md has the formulas
// with their sources.
#pragma once

#include <cstdint>

#include "core/base/dtype.h"
#include "core/base/units.h"
#include "core/cluster/cluster.h"

namespace foreshard {

// C[batch, m, n] = A[batch, m, k] B[batch, k, n]
struct Gemm {
  std::int64_t batch = 1, m = 0, n = 0, k = 0;
};
// Arithmetic only, on tensor units (or vector units): waves of output tiles over the SMs, with the fastest tile size and split of k.
Seconds gemm_time(const Gpu& gpu, const Gemm& gemm, DType type);

// Fraction of the rate that remains where the rows of operands (n or k elements of y = x w) are no multiple of 16 bytes; 1: they are.
double alignment_share(const Gpu& gpu, const Gemm& gemm, DType type);

// The longer of both, plus the share ProductConstants::exposed * arithmetic / (arithmetic + memory) of the shorter.
Seconds overlapped(Seconds arithmetic, Seconds memory);

// Time of the product alone in a short benchmark: rows aligned, operands and result in device memory, without the launch.
Seconds product_formula(const Gpu& gpu, const Gemm& gemm, DType type);

}  // namespace foreshard
