// Time of one compute instruction alone on a GPU: roofline with a shape-dependent efficiency. docs/cost-model.md has
// the formulas with their sources, strategy/machine_constants.h the numbers.
#pragma once

#include <cstdint>

#include "core/cluster.h"
#include "core/plan.h"
#include "core/units.h"

namespace foreshard {

// The kernel takes the longer of its arithmetic and its memory traffic; starting it comes on top.
struct OpTime {
  Seconds arithmetic = {};
  Seconds memory = {};
  Seconds overhead = {};
  Seconds total() const { return max(arithmetic, memory) + overhead; }
  bool operator==(const OpTime&) const = default;
};

// Shapes and attributes as in docs/operators.md. An operator without FLOPs is bound by its traffic. No traffic and no
// FLOPs: all zero (nothing is launched).
OpTime op_pieces(const Gpu& gpu, const Compute& compute);
Seconds op_time(const Gpu& gpu, const Compute& compute);

// C[batch, m, n] = A[batch, m, k] B[batch, k, n] on tensor (or vector) units: tiles over SMs in whole waves. Arithmetic
// only.
struct Gemm {
  std::int64_t batch = 1, m = 0, n = 0, k = 0;
};
Seconds gemm_time(const Gpu& gpu, const Gemm& gemm, DType type);

}  // namespace foreshard
