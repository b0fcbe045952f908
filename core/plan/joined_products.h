// The pairs of a matrix product and a GELU that a GPU can compute in one kernel (cuBLASLt's epilogues, exec/cuda_ops/gpu_fused.cpp), as far
// as the plan decides it. The executor also checks where operands lie and which streams wait, and may run a pair as two kernels.
#pragma once

#include <vector>

#include "core/plan/plan.h"

namespace foreshard {

// Instructions of a segment, by their places in it.
//   forward, recompute   product: y = x w^T             activation: gelu(y)
//   input gradient       product: dy = dz w             activation: dy gelu'(...); the weight gradient of the product may stand between
struct JoinedProduct {
  std::size_t product = 0, activation = 0;
  bool operator==(const JoinedProduct&) const = default;
};

// In the order of the products. Both instructions of a pair are on one stream; products are in bf16 or fp16.
std::vector<JoinedProduct> joined_products(const Segment& segment);

}  // namespace foreshard
