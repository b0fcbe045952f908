// exp without branches, so that the compiler can vectorise loops that use it.
#pragma once

#include <bit>
#include <cmath>
#include <cstdint>
#include <type_traits>

namespace foreshard::host {

// e^x within 2 units in the last place; 0 below -708 (double) or -87 (float), +infinity above 709 or 88; NaN in, NaN out.
// x = n ln 2 + r, |r| <= ln 2 / 2; e^r by its Taylor series, whose first dropped term is below half a unit in the last place;
// 2^n by writing n into the exponent. n is rounded by adding 1.5 * 2^(mantissa bits), which leaves it in the low bits.
template <class T>
inline T fast_exp(T x) {
  constexpr bool twice = std::is_same_v<T, double>;
  using Bits = std::conditional_t<twice, std::uint64_t, std::uint32_t>;
  constexpr int mantissa = twice ? 52 : 23;
  constexpr T shift = twice ? T(0x1.8p52) : T(0x1.8p23);
  constexpr T low = twice ? T(-708) : T(-87), high = twice ? T(709) : T(88);
  // ln 2 in two parts; the first has enough trailing zeros that n times it is exact.
  constexpr T ln2_high = twice ? T(0x1.62e42fefa38p-1) : T(0x1.62ep-1);
  constexpr T ln2_low = twice ? T(0x1.ef35793c7673p-45) : T(0x1.0bfbe8p-15);
  const T inside = x < low ? low : (x > high ? high : x);
  const T shifted = inside * T(1.4426950408889634074) + shift;
  const T n = shifted - shift;
  const T r = (inside - n * ln2_high) - n * ln2_low;
  T sum;
  if constexpr (twice) {
    sum = T(1.0 / 6227020800.0);
    sum = sum * r + T(1.0 / 479001600.0);
    sum = sum * r + T(1.0 / 39916800.0);
    sum = sum * r + T(1.0 / 3628800.0);
    sum = sum * r + T(1.0 / 362880.0);
    sum = sum * r + T(1.0 / 40320.0);
    sum = sum * r + T(1.0 / 5040.0);
  } else {
    sum = T(1.0 / 5040.0);
  }
  sum = sum * r + T(1.0 / 720.0);
  sum = sum * r + T(1.0 / 120.0);
  sum = sum * r + T(1.0 / 24.0);
  sum = sum * r + T(1.0 / 6.0);
  sum = sum * r + T(0.5);
  sum = sum * r + T(1);
  sum = sum * r + T(1);
  const Bits power = std::bit_cast<Bits>(sum) + (std::bit_cast<Bits>(shifted) << mantissa);
  const T value = std::bit_cast<T>(power);
  // NaN needs a case of its own: the addition to the exponent above may turn it into a number. Poisoned memory (bytes 0xFF) contains such
  // NaN. NOLINTNEXTLINE(misc-redundant-expression): x == x is what the vectoriser knows of std::isnan
  return x < low ? T(0) : (x > high ? T(INFINITY) : (x == x ? value : x));
}

// 1 / (1 + e^-x)
template <class T>
inline T sigmoid(T x) {
  return T(1) / (T(1) + fast_exp(-x));
}

}  // namespace foreshard::host
