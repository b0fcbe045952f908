// Rounding of the factors of 8-bit matrix products: the largest magnitude of a tensor, its scale, and its numbers in 8 bits. The
// conversions are those of core/base/float8.h. Reference: exec/host/host_matmul.cpp.
#pragma once

#include "exec/cuda/kernels/words.h"

namespace foreshard::gpu {

// Parameters of a format, E5M2 or E4M3: bits of the mantissa, exponent bias, exponent and code of the largest number.
struct EightBits {
  int mantissa, bias, exponent;
  std::uint32_t largest;
};
GPU_FUNCTION EightBits eight_bits_of(bool gradient) {
  return gradient ? EightBits{2, 15, 15, 0x7Bu} : EightBits{3, 7, 8, 0x7Eu};
}

GPU_FUNCTION std::uint32_t to_eight_bits(float x, const EightBits& f) {
  const std::uint32_t word = float_to_bits(x), sign = (word >> 24) & 0x80u, magnitude = word & 0x7FFFFFFFu;
  if (magnitude >= 0x7F800000u) return sign | (f.mantissa == 2 && magnitude == 0x7F800000u ? 0x7Cu : 0x7Fu);
  const int drop = 23 - f.mantissa;
  const std::uint32_t normal = ((magnitude + (1u << (drop - 1)) - 1u + ((magnitude >> drop) & 1u)) >> drop) -
                               (static_cast<std::uint32_t>(127 - f.bias) << f.mantissa);
  const std::uint32_t shift = static_cast<std::uint32_t>(128 - f.bias - f.mantissa + 23) << 23;
  const std::uint32_t subnormal = float_to_bits(bits_to_float(magnitude) + bits_to_float(shift)) - shift;
  const std::uint32_t code = magnitude < static_cast<std::uint32_t>(128 - f.bias) << 23 ? subnormal : normal;
  return sign | (code < f.largest ? code : f.largest);
}
GPU_FUNCTION float from_eight_bits(std::uint32_t code, const EightBits& f) {
  const std::uint32_t sign = (code & 0x80u) << 24, magnitude = code & 0x7Fu;
  std::uint32_t value = (magnitude << (23 - f.mantissa)) + (static_cast<std::uint32_t>(127 - f.bias) << 23);
  if (magnitude > f.largest)
    value = f.mantissa == 2 && magnitude == 0x7Cu ? 0x7F800000u : 0x7FC00000u;
  else if (magnitude >> f.mantissa == 0)
    value = float_to_bits(static_cast<float>(magnitude) *
                          bits_to_float(static_cast<std::uint32_t>(128 - f.bias - f.mantissa) << 23));
  return bits_to_float(value | sign);
}
// The largest power of two, within 2^+-126, that keeps the largest magnitude in the format; `word`: its bits. 1 if it is 0 or not finite.
GPU_FUNCTION float scale_of_largest(std::uint32_t word, const EightBits& f) {
  if (word == 0 || word >= 0x7F800000u) return 1.0f;
  const int exponent = static_cast<int>(word >> 23) - 127,
            power = f.exponent - exponent - ((word & 0x7FFFFFu) > 0x600000u ? 1 : 0);
  const int held = power > 126 ? 126 : power < -126 ? -126 : power;
  return bits_to_float(static_cast<std::uint32_t>(held + 127) << 23);
}

// The bits of magnitudes compare as the magnitudes; NaN is larger than all numbers.
GPU_FUNCTION std::uint32_t larger(std::uint32_t a, std::uint32_t b) { return a > b ? a : b; }

// One thread block per chunk of x. The last launch, of one block, reads the results of the blocks and writes {scale, 1 / scale}. Reads 2
// bytes per element in bf16; bound by memory.
GPU_KERNEL max_magnitude(const MaxMagnitudeArgs a) {
  GPU_SHARED(std::uint32_t, parts, kMostWarps);
  const std::int64_t first = block() * a.per_block, end = first + a.per_block < a.count ? first + a.per_block : a.count;
  std::uint32_t most = 0;
  for (std::int64_t i = first + 4 * thread(); i < end; i += 4 * threads()) {
    float x[4];
    load4(a.x, i, up_to_four(end - i), x);
    GPU_UNROLL
    for (int j = 0; j < 4; ++j) most = larger(most, float_to_bits(x[j]) & 0x7FFFFFFFu);
  }
  for (int mask = kWarp / 2; mask > 0; mask /= 2) most = larger(most, float_to_bits(lane_xor(bits_to_float(most), mask)));
  if (lane() == 0) parts[warp()] = most;
  GPU_BARRIER();
  if (thread() != 0) return;
  for (int w = 1; w < warps(); ++w) most = larger(most, parts[w]);
  if (!a.last) return store(a.out, block(), bits_to_float(most));
  const float scale = scale_of_largest(most, eight_bits_of(a.gradient));
  store(a.out, 0, scale);
  store(a.out, 1, 1.0f / scale);
}

// Stores the code if y has type U8, else the value of the code.
GPU_FUNCTION void store_eight_bits(const EightBitsArgs& a, std::int64_t i, float x, float scale, const EightBits& f) {
  const std::uint32_t code = to_eight_bits(x * scale, f);
  if (a.y.type != Type::U8) return store(a.y, i, from_eight_bits(code, f) * (1.0f / scale));
  check(a.y, i, 1, true);
  static_cast<std::uint8_t*>(a.y.data)[i] = static_cast<std::uint8_t>(code);
}

// Reads 2 bytes in bf16 and writes 1 per element; bound by memory. `transposed` transposes in tiles of 32 x 32.
GPU_KERNEL eight_bits(const EightBitsArgs a) {
  GPU_SHARED(float, tile, 32 * 33);
  const EightBits f = eight_bits_of(a.gradient);
  const float scale = load(a.scale, 0);
  if (!a.transposed) {
    const std::int64_t size = a.rows * a.columns;
    for (std::int64_t i = first_element(); i < size; i += element_stride()) {
      float x[4];
      const int count = up_to_four(size - i);
      load4(a.x, i, count, x);
      for (int j = 0; j < count; ++j) store_eight_bits(a, i + j, x[j], scale, f);
    }
    return;
  }
  const std::int64_t first_column = 32 * block(), first_row = 32 * block_y();
  for (int r = warp(); r < 32; r += warps()) {
    const std::int64_t row = first_row + r, column = first_column + lane();
    if (row < a.rows && column < a.columns) tile[33 * r + lane()] = load(a.x, row * a.columns + column);
  }
  GPU_BARRIER();
  for (int c = warp(); c < 32; c += warps()) {
    const std::int64_t column = first_column + c, row = first_row + lane();
    if (row < a.rows && column < a.columns) store_eight_bits(a, column * a.rows + row, tile[33 * lane() + c], scale, f);
  }
}

}  // namespace foreshard::gpu
