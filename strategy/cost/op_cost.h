// Time of one compute instruction alone on a GPU: roofline with a shape-dependent efficiency. docs/cost-model.md has
// the formulas with their sources, strategy/cost/machine_constants.h the numbers.
#pragma once

#include <cstdint>

#include "core/base/units.h"
#include "core/cluster/cluster.h"
#include "core/plan/plan.h"

namespace foreshard {

// FlashAttention 1 (and Triton's of its time), FlashAttention 2, what vendors ship now (FlashAttention 3, cuDNN), and the newest
// whose backward adds in a fixed order.
enum class FlashKernel : std::uint8_t { One, Two, Newest, Deterministic };
inline constexpr int kFlashKernels = 4;

// A kernel takes the longer of its arithmetic and its memory traffic. Of a kernel bound by arithmetic a part of the traffic
// stays exposed: the first tiles load and the last ones store with nothing to overlap. Starting the kernel comes on top.
struct OpTime {
  Seconds arithmetic = {};
  Seconds memory = {};
  Seconds overhead = {};
  Seconds total() const;
  bool operator==(const OpTime&) const = default;
};

// Shapes as in docs/operators.md. An operator without FLOPs is bound by its traffic. No traffic and no
// FLOPs: all zero (nothing is launched).
// Attention is that of `flash`.
OpTime op_pieces(const Gpu& gpu, const Compute& compute, FlashKernel flash = FlashKernel::Newest);
Seconds op_time(const Gpu& gpu, const Compute& compute, FlashKernel flash = FlashKernel::Newest);

// C[batch, m, n] = A[batch, m, k] B[batch, k, n] on tensor (or vector) units: tiles over SMs in whole waves. Arithmetic
// only.
struct Gemm {
  std::int64_t batch = 1, m = 0, n = 0, k = 0;
};
Seconds gemm_time(const Gpu& gpu, const Gemm& gemm, DType type);

}  // namespace foreshard
