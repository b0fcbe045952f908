// Where the factors of a linear layer in 8 bits lie while it multiplies: memory of the plan, the last block that the instruction writes.
//
//   | largest numbers of blocks | scales of both | first factor | second factor |
//
// Forward: x and w; gradient of x: that of y and w; gradient of w: that of y and x. Parts of y come one after the other to the same place.
#pragma once

#include <algorithm>
#include <span>

#include "core/op/op.h"

namespace foreshard {

struct EightBitFactors {
  static constexpr std::int64_t kMostBlocks = 512, kBorder = 256;
  static constexpr std::int64_t scales = 4 * kMostBlocks, first = scales + 2 * kBorder;
  std::int64_t second = 0, end = 0;
};

// `shape`: {1, m, n, k}; `parts`: the columns of the parts of y; `size`: bytes of a number.
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

// Libraries multiply codes of 8 bits in sizes of multiples of 16 only (cublasLtMatmul, "To use FP8 kernels"); else the factors are the numbers
// that the codes stand for, in 16 bits.
inline bool multiplies_codes(const Shape& shape, std::span<const std::int64_t> parts) {
  const auto whole = [](std::int64_t size) { return size % 16 == 0; };
  return std::all_of(shape.dims.begin() + 1, shape.dims.end(), whole) && std::all_of(parts.begin(), parts.end(), whole);
}

// What a plan gives an instruction.
inline Bytes eight_bit_memory(const Shape& shape, Phase phase, std::span<const std::int64_t> parts) {
  return {eight_bit_factors(shape, phase, parts, multiplies_codes(shape, parts) ? 1 : 2).end};
}

}  // namespace foreshard
