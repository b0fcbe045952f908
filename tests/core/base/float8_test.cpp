// Both formats against their definition, code by code, and against the nearest code found by looking at all.
#include "core/base/float8.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <random>
#include <vector>

namespace foreshard::float8_test {

static constexpr Float8 kFormats[] = {Float8::E4M3, Float8::E5M2};

// (-1)^s 2^(e - bias) (1 + m / 2^bits), or 2^(1 - bias) m / 2^bits where e = 0.
static double defined(int code, Float8 format) {
  const int bits = format == Float8::E4M3 ? 3 : 2, bias = format == Float8::E4M3 ? 7 : 15;
  const int exponent = code % 128 >> bits, mantissa = code % (1 << bits);
  const double sign = code >= 128 ? -1 : 1;
  if (format == Float8::E4M3 && code % 128 == 127) return std::nan("");
  if (format == Float8::E5M2 && exponent == 31) return mantissa == 0 ? sign * INFINITY : std::nan("");
  const double fraction = std::ldexp(mantissa, -bits);
  return sign * (exponent == 0 ? std::ldexp(fraction, 1 - bias) : std::ldexp(1 + fraction, exponent - bias));
}

TEST(Float8, EveryCodeIsTheNumberOfItsDefinitionAndComesBack) {
  for (const Float8 format : kFormats)
    for (int code = 0; code < 256; ++code) {
      const float value = float8_value(static_cast<std::uint8_t>(code), format);
      const double wanted = defined(code, format);
      if (std::isnan(wanted)) {
        EXPECT_TRUE(std::isnan(value)) << code;
        EXPECT_TRUE(std::isnan(float8_value(float8_code(value, format), format))) << code;
        continue;
      }
      EXPECT_EQ(static_cast<double>(value), wanted) << code;
      EXPECT_EQ(float8_code(value, format), code);  // -0, too
    }
}

TEST(Float8, LargestAndSmallest) {
  EXPECT_EQ(float8_value(0x7E, Float8::E4M3), 448.0F);
  EXPECT_EQ(float8_value(0x7B, Float8::E5M2), 57344.0F);
  EXPECT_EQ(float8_value(1, Float8::E4M3), std::ldexp(1.0F, -9));
  EXPECT_EQ(float8_value(1, Float8::E5M2), std::ldexp(1.0F, -16));
  for (const Float8 format : kFormats) {
    EXPECT_EQ(float8_code(1e30F, format), largest_code(format));
    EXPECT_EQ(float8_code(-std::numeric_limits<float>::max(), format), 0x80U | largest_code(format));
    EXPECT_FALSE(std::isfinite(float8_value(float8_code(INFINITY, format), format)));
    EXPECT_FALSE(std::isfinite(float8_value(float8_code(-INFINITY, format), format)));
    EXPECT_EQ(float8_code(std::numeric_limits<float>::denorm_min(), format), 0);
  }
}

// The nearest of all finite codes; of two as near the one whose last bit is 0; beyond the largest the largest.
static int nearest(float x, Float8 format) {
  int best = 0;
  double least = INFINITY;
  for (int code = 0; code < 128; ++code) {
    const double value = defined(code, format);
    if (!std::isfinite(value)) continue;
    const double distance = std::abs(std::abs(static_cast<double>(x)) - value);
    if (distance < least || (distance == least && code % 2 == 0)) best = code, least = distance;
  }
  return best + (std::signbit(x) ? 128 : 0);
}

TEST(Float8, IsTheNearestCode) {
  std::mt19937 random(8);
  std::vector<float> tried;
  for (int i = 0; i < 20'000; ++i)
    tried.push_back(std::ldexp(std::uniform_real_distribution<float>(-2, 2)(random), static_cast<int>(random() % 44) - 24));
  for (const Float8 format : kFormats)
    for (int code = 0; code + 1 < 128; ++code) {  // in the middle between two, and just beside it
      const double low = defined(code, format), high = defined(code + 1, format);
      if (!std::isfinite(high)) continue;
      const auto middle = static_cast<float>((low + high) / 2);
      for (const float x : {middle, std::nextafter(middle, 0.0F), std::nextafter(middle, 1e30F), -middle}) tried.push_back(x);
    }
  for (const Float8 format : kFormats)
    for (const float x : tried) ASSERT_EQ(float8_code(x, format), nearest(x, format)) << x;
}

TEST(Float8, TheScaleIsTheLargestPowerOfTwoThatFits) {
  std::mt19937 random(9);
  for (const Float8 format : kFormats) {
    const double most = defined(static_cast<int>(largest_code(format)), format);
    for (int i = 0; i < 2000; ++i) {
      const float largest =
          std::ldexp(std::uniform_real_distribution<float>(1, 2)(random), static_cast<int>(random() % 200) - 100);
      const double scale = float8_scale(largest, format);
      int exponent = 0;
      EXPECT_EQ(std::frexp(scale, &exponent), 0.5);
      EXPECT_LE(largest * scale, most);
      EXPECT_GT(largest * scale * 2, most);
    }
    EXPECT_EQ(float8_scale(static_cast<float>(most), format), 1.0F);
    EXPECT_EQ(float8_scale(0, format), 1.0F);
    EXPECT_EQ(float8_scale(INFINITY, format), 1.0F);
    EXPECT_EQ(float8_scale(NAN, format), 1.0F);
    for (const float extreme : {1e-45F, 1e-38F, 3e38F}) EXPECT_TRUE(std::isfinite(1 / float8_scale(extreme, format)));
  }
}

// What stands for a number is off by half a unit in the last place at most, and bf16 holds it exactly.
TEST(Float8, ARoundedNumberIsOneOfBf16) {
  std::mt19937 random(10);
  std::normal_distribution<float> normal;
  for (const Float8 format : kFormats)
    for (int i = 0; i < 5000; ++i) {
      const float x = normal(random) * 1e-3F, y = float8_rounded(x, float8_scale(4e-3F, format), format);
      EXPECT_EQ(std::bit_cast<std::uint32_t>(y) & 0xFFFFU, 0U);
      if (std::abs(x) < 1e-5F || std::abs(x) > 4e-3F) continue;
      EXPECT_LE(std::abs(x - y), std::abs(x) * (format == Float8::E4M3 ? 0.0626F : 0.126F));
    }
}

}  // namespace foreshard::float8_test
