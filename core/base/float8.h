// 8-bit floating point (Micikevicius et al. 2022, "FP8 formats for deep learning", table 1): conversion from and to float, and the scale
// that brings the values of a tensor into the range of the format.
//
//            sign exponent mantissa  bias  largest           smallest   not finite
//   E4M3     1    4        3         7     1.75 2^8 = 448    2^-9       NaN: 0x7F, 0xFF
//   E5M2     1    5        2         15    1.75 2^15         2^-16      infinity: 0x7C, 0xFC; NaN: larger codes
#pragma once

#include <bit>
#include <cstdint>

namespace foreshard {

enum class Float8 : std::uint8_t { E4M3, E5M2 };

constexpr int mantissa_of(Float8 format) { return format == Float8::E4M3 ? 3 : 2; }  // bits
constexpr int bias_of(Float8 format) { return format == Float8::E4M3 ? 7 : 15; }
// The code of the largest finite number, and that number's exponent.
constexpr std::uint32_t largest_code(Float8 format) { return format == Float8::E4M3 ? 0x7E : 0x7B; }
constexpr int largest_exponent(Float8 format) { return format == Float8::E4M3 ? 8 : 15; }

// The number that a code stands for.
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

// The code of x, rounded to nearest, ties to even. A finite x beyond the range saturates to the largest finite number. Infinity and NaN
// stay what they are; E4M3 has no infinity, so there infinity becomes NaN.
inline std::uint8_t float8_code(float x, Float8 format) {
  const int bits = mantissa_of(format), bias = bias_of(format);
  const auto word = std::bit_cast<std::uint32_t>(x);
  const std::uint32_t sign = (word >> 24U) & 0x80U, magnitude = word & 0x7FFFFFFFU;
  if (magnitude >= 0x7F800000U)
    return static_cast<std::uint8_t>(sign | (format == Float8::E5M2 && magnitude == 0x7F800000U ? 0x7CU : 0x7FU));
  const auto drop = static_cast<std::uint32_t>(23 - bits);
  const std::uint32_t normal = ((magnitude + (1U << (drop - 1)) - 1 + ((magnitude >> drop) & 1U)) >> drop) -
                               (static_cast<std::uint32_t>(127 - bias) << static_cast<std::uint32_t>(bits));
  // `shift` is a float whose last mantissa bit is worth 2^(1 - bias - bits): adding it rounds the magnitude to a multiple of that.
  const auto shift = static_cast<std::uint32_t>(128 - bias - bits + 23) << 23U;
  const std::uint32_t subnormal =
      std::bit_cast<std::uint32_t>(std::bit_cast<float>(magnitude) + std::bit_cast<float>(shift)) - shift;
  const bool small = magnitude < static_cast<std::uint32_t>(128 - bias) << 23U;
  const std::uint32_t code = small ? subnormal : normal;
  return static_cast<std::uint8_t>(sign | (code < largest_code(format) ? code : largest_code(format)));
}

// The largest power of two that keeps |largest| times it within the range of the format; 1 if `largest` is 0 or not finite. Because it is a
// power of two, scaling rounds nothing, and a scaled 16-bit number is a 16-bit number again. The result stays within 2^-126 .. 2^126.
inline float float8_scale(float largest, Float8 format) {
  const std::uint32_t word = std::bit_cast<std::uint32_t>(largest) & 0x7FFFFFFFU;
  if (word == 0 || word >= 0x7F800000U) return 1.0F;
  const auto exponent = static_cast<int>(word >> 23U) - 127;  // -127 for subnormals, whose scale is capped below anyway
  const bool above = (word & 0x7FFFFFU) > 0x600000U;          // its mantissa is above 1.75
  const int power = largest_exponent(format) - exponent - (above ? 1 : 0);
  const int held = power > 126 ? 126 : power < -126 ? -126 : power;
  return std::bit_cast<float>(static_cast<std::uint32_t>(held + 127) << 23U);
}

// x after a round trip through the format: scaled by `scale`, rounded to a code, and scaled back.
inline float float8_rounded(float x, float scale, Float8 format) {
  return float8_value(float8_code(x * scale, format), format) * (1.0F / scale);
}

}  // namespace foreshard
