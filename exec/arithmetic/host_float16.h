// The bits of bfloat16 and IEEE half-precision numbers, and their conversion to and from float, rounding to nearest even.
#pragma once

#include <bit>
#include <cstdint>

namespace foreshard {

struct BFloat16 {
  std::uint16_t bits = 0;
};
struct Float16 {
  std::uint16_t bits = 0;
};

inline float to_float(BFloat16 x) { return std::bit_cast<float>(std::uint32_t{x.bits} << 16); }

// A NaN needs a case of its own, because rounding its mantissa could turn it into infinity.
inline BFloat16 to_bfloat16(float x) {
  const auto bits = std::bit_cast<std::uint32_t>(x);
  const std::uint32_t rounded = (bits + 0x7FFF + ((bits >> 16) & 1)) >> 16;
  const bool nan = (bits & 0x7FFFFFFF) > 0x7F800000;
  return {static_cast<std::uint16_t>(nan ? (bits >> 16) | 0x40 : rounded)};
}

inline float to_float(Float16 x) {
  const std::uint32_t sign = std::uint32_t{x.bits & 0x8000u} << 16;
  const std::uint32_t magnitude = x.bits & 0x7FFFu;
  // Shifting the exponent into place leaves a number that is 2^112 too small; that also normalises subnormals.
  const float scaled = std::bit_cast<float>(magnitude << 13) * 0x1p112f;
  const std::uint32_t bits = magnitude >= 0x7C00 ? (magnitude << 13) | 0x7F800000u : std::bit_cast<std::uint32_t>(scaled);
  return std::bit_cast<float>(bits | sign);
}

inline Float16 to_float16(float x) {
  const auto bits = std::bit_cast<std::uint32_t>(x);
  const std::uint32_t sign = (bits >> 16) & 0x8000, magnitude = bits & 0x7FFFFFFF;
  // Normal: rebias the exponent by 127 - 15 and round away 13 bits. Subnormal: adding 0.5 makes the float unit round at 2^-24.
  const std::uint32_t normal = (magnitude - (112u << 23) + 0xFFF + ((magnitude >> 13) & 1)) >> 13;
  const std::uint32_t subnormal = std::bit_cast<std::uint32_t>(std::bit_cast<float>(magnitude) + 0.5f) - 0x3F000000u;
  std::uint32_t half = magnitude < 0x38800000 ? subnormal : normal;
  if (magnitude >= 0x477FF000) half = 0x7C00;  // 65520 and above
  if (magnitude > 0x7F800000) half = 0x7E00;
  return {static_cast<std::uint16_t>(half | sign)};
}

}  // namespace foreshard
