// 8-bit floating point (Micikevicius et al. 2022, "FP8 formats for deep learning", table 1), and the scale that brings a tensor into its range.
//
//            sign exponent mantissa  bias  largest           smallest   not finite
//   E4M3     1    4        3         7     1.75 2^8 = 448    2^-9       NaN: 0x7F, 0xFF
//   E5M2     1    5        2         15    1.75 2^15         2^-16      infinity: 0x7C, 0xFC; NaN: behind it
#pragma once

#include <bit>
#include <cstdint>

namespace foreshard {

enum class Float8 : std::uint8_t { E4M3, E5M2 };

constexpr int mantissa_of(Float8 format) { return format == Float8::E4M3 ? 3 : 2; }
constexpr int bias_of(Float8 format) { return format == Float8::E4M3 ? 7 : 15; }
constexpr std::uint32_t largest_code(Float8 format) { return format == Float8::E4M3 ? 0x7E : 0x7B; }
constexpr int largest_exponent(Float8 format) { return format == Float8::E4M3 ? 8 : 15; }

inline float float8_value(std::uint8_t code, Float8 format) {
  const int bits = mantissa_of(format), bias = bias_of(format);
  const std::uint32_t sign = std::uint32_t{code & 0x80U} << 24U, magnitude = code & 0x7FU;
  std::uint32_t value = 0;
  if (magnitude > largest_code(format))
    value = format == Float8::E5M2 && magnitude == 0x7C ? 0x7F800000U : 0x7FC00000U;
  else if (magnitude >> bits != 0)
    value = (magnitude << (23 - bits)) + (static_cast<std::uint32_t>(127 - bias) << 23U);
  else  // subnormal: a multiple of 2^(1 - bias - bits)
    value = std::bit_cast<std::uint32_t>(static_cast<float>(magnitude) *
                                         std::bit_cast<float>(static_cast<std::uint32_t>(128 - bias - bits) << 23U));
  return std::bit_cast<float>(sign | value);
}

// To the nearest, of two as near the even one. What is finite and too large becomes the largest; what is not finite stays so (in E4M3: NaN).
inline std::uint8_t float8_code(float x, Float8 format) {
  const int bits = mantissa_of(format), bias = bias_of(format);
  const auto word = std::bit_cast<std::uint32_t>(x);
  const std::uint32_t sign = (word >> 24U) & 0x80U, magnitude = word & 0x7FFFFFFFU;
  if (magnitude >= 0x7F800000U)
    return static_cast<std::uint8_t>(sign | (format == Float8::E5M2 && magnitude == 0x7F800000U ? 0x7CU : 0x7FU));
  const auto drop = static_cast<std::uint32_t>(23 - bits);
  const std::uint32_t normal = ((magnitude + (1U << (drop - 1)) - 1 + ((magnitude >> drop) & 1U)) >> drop) -
                               (static_cast<std::uint32_t>(127 - bias) << static_cast<std::uint32_t>(bits));
  // A float to which this is added has the unit 2^(1 - bias - bits) in its last place: the sum is rounded there.
  const auto shift = static_cast<std::uint32_t>(128 - bias - bits + 23) << 23U;
  const std::uint32_t subnormal =
      std::bit_cast<std::uint32_t>(std::bit_cast<float>(magnitude) + std::bit_cast<float>(shift)) - shift;
  const bool small = magnitude < static_cast<std::uint32_t>(128 - bias) << 23U;
  const std::uint32_t code = small ? subnormal : normal;
  return static_cast<std::uint8_t>(sign | (code < largest_code(format) ? code : largest_code(format)));
}

// The largest power of two by which a number of this magnitude may be multiplied without leaving the range; 1 for 0 and what is not finite. A power
// of two: so scaling rounds nothing, and a scaled number is a 16-bit one too.
inline float float8_scale(float largest, Float8 format) {
  const std::uint32_t word = std::bit_cast<std::uint32_t>(largest) & 0x7FFFFFFFU;
  if (word == 0 || word >= 0x7F800000U) return 1.0F;
  const auto exponent = static_cast<int>(word >> 23U) - 127;  // of a subnormal -127: as good
  const bool above = (word & 0x7FFFFFU) > 0x600000U;          // than 1.75
  const int power = largest_exponent(format) - exponent - (above ? 1 : 0);
  const int held = power > 126 ? 126 : power < -126 ? -126 : power;
  return std::bit_cast<float>(static_cast<std::uint32_t>(held + 127) << 23U);
}

// The number that stands for x in a tensor with that scale.
inline float float8_rounded(float x, float scale, Float8 format) {
  return float8_value(float8_code(x * scale, format), format) * (1.0F / scale);
}

}  // namespace foreshard
