// The pairs of a product and a GELU that a GPU computes in one product (cuBLASLt's epilogues, exec/cuda_ops/gpu_fused.cpp), as a plan shows
// them. The executor also checks where operands lie and which streams wait; such pairs may stay apart when they run.
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

// In the order of the products. Of one stream each, in bf16 or fp16.
std::vector<JoinedProduct> joined_products(const Segment& segment);

}  // namespace foreshard
