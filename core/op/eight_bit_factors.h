// The scratch memory of a linear layer that multiplies in 8 bits: where it holds the two factors that it has rounded. It is a block of the
// plan, the last one that the instruction writes.
//
//   | largest magnitudes, one per thread block | scales of both | first factor | second factor |
//
// Factors of the forward: x and w; of the gradient of x: the gradient of y, and w; of the gradient of w: the gradient of y, and x. If y has
// several parts (outputs), their gradients use the same place one after the other.
#pragma once

#include <algorithm>
#include <span>

#include "core/op/op.h"

namespace foreshard {

// Offsets in bytes. kMostBlocks: the most thread blocks that find the largest magnitudes; kBorder: alignment of scales and factors.
struct EightBitFactors {
  static constexpr std::int64_t kMostBlocks = 512, kBorder = 256;
  static constexpr std::int64_t scales = 4 * kMostBlocks, first = scales + 2 * kBorder;
  std::int64_t second = 0, end = 0;
};

// `shape`: {1, m, n, k}; `parts`: columns of each part of y, empty if it has one; `size`: bytes of an element of a factor.
inline EightBitFactors eight_bit_factors(const Shape& shape, Phase phase, std::span<const std::int64_t> parts,
                                         std::int64_t size) {
  const std::int64_t m = shape.dims[1], n = shape.dims[2], k = shape.dims[3];
  const std::int64_t widest = parts.empty() ? n : *std::max_element(parts.begin(), parts.end());
  const std::int64_t first = ops::is_forward(phase) ? m * k : m * widest;
  const std::int64_t second = phase == Phase::WeightGrad ? m * k : n * k;
  EightBitFactors at;
  at.second = EightBitFactors::first + round_up(size * first, EightBitFactors::kBorder);
  at.end = at.second + round_up(size * second, EightBitFactors::kBorder);
  return at;
}

// Whether the factors are stored as 8-bit codes. Libraries multiply such codes only if all sizes are multiples of 16 (cublasLtMatmul, "To
// use FP8 kernels"). Otherwise the factors are stored as the values of their codes, in 16 bits.
inline bool multiplies_codes(const Shape& shape, std::span<const std::int64_t> parts) {
  const auto whole = [](std::int64_t size) { return size % 16 == 0; };
  return std::all_of(shape.dims.begin() + 1, shape.dims.end(), whole) && std::all_of(parts.begin(), parts.end(), whole);
}

// Bytes of the block that a plan gives such an instruction.
inline Bytes eight_bit_memory(const Shape& shape, Phase phase, std::span<const std::int64_t> parts) {
  return {eight_bit_factors(shape, phase, parts, multiplies_codes(shape, parts) ? 1 : 2).end};
}

}  // namespace foreshard
