// Norms, activations, sums and the exponential against their formulas.
#include <gtest/gtest.h>

#include <cmath>
#include <functional>

#include "exec/arithmetic/host_math.h"
#include "tests/exec/host_arrays.h"

namespace foreshard::host_rows_test {
namespace {

// Two units in the last place, everywhere; the ends are exact.
TEST(HostMath, ExponentialInDouble) {
  for (int i = -707'000; i <= 709'000; i += 7) {
    const double x = i * 1e-3 + 1e-7 * (i % 13), exact = std::exp(x);
    ASSERT_LE(std::abs(host::fast_exp(x) - exact), 2 * (std::nextafter(exact, INFINITY) - exact)) << x;
  }
  EXPECT_EQ(host::fast_exp(0.0), 1.0);
  EXPECT_EQ(host::fast_exp(-INFINITY), 0.0);
  EXPECT_EQ(host::fast_exp(-800.0), 0.0);
  EXPECT_EQ(host::fast_exp(800.0), INFINITY);
  EXPECT_TRUE(std::isnan(host::fast_exp(std::nan(""))));
}

TEST(HostMath, ExponentialInFloat) {
  for (int i = -86'900; i <= 87'900; ++i) {
    const float x = static_cast<float>(i) * 1e-3f;
    const double exact = std::exp(static_cast<double>(x));
    const float rounded = static_cast<float>(exact);
    ASSERT_LE(std::abs(host::fast_exp(x) - exact), 2.0 * (std::nextafter(rounded, INFINITY) - rounded)) << x;
  }
  EXPECT_EQ(host::fast_exp(-INFINITY), 0.0f);
  EXPECT_EQ(host::fast_exp(90.0f), INFINITY);
}

TEST(HostNorm, LayerNormAndRmsNorm) {
  const std::int64_t rows = 3, h = 37;
  const Array x = random_array(rows * h, 1), w = random_array(h, 2), b = random_array(h, 3);
  Compute what{.op = ops::Norm{.kind = NormKind::LayerNorm, .eps = 0.01}, .shapes = {{{rows, h}, DType::F64}}};
  const Array layer = outputs_of(what, {x, w, b}, {rows * h})[0];
  what.op = ops::Norm{.kind = NormKind::RmsNorm, .eps = 0.01};
  const Array rms = outputs_of(what, {x, w}, {rows * h})[0];
  for (std::int64_t r = 0; r < rows; ++r) {
    double mean = 0, square = 0;
    for (std::int64_t c = 0; c < h; ++c) mean += x.at(r * h + c) / h, square += x.at(r * h + c) * x.at(r * h + c) / h;
    for (std::int64_t c = 0; c < h; ++c) {
      const double value = x.at(r * h + c);
      EXPECT_NEAR(layer.at(r * h + c), (value - mean) / std::sqrt(square - mean * mean + 0.01) * w.at(c) + b.at(c), 1e-13);
      EXPECT_NEAR(rms.at(r * h + c), value / std::sqrt(square + 0.01) * w.at(c), 1e-13);
    }
  }
}

TEST(HostActivation, Formulas) {
  const std::int64_t rows = 4, columns = 9, size = rows * columns;
  const Array x = random_array(size, 1), gated = random_array(2 * size, 2);
  using Function = ops::Activation::Function;
  const auto run = [&](Function function, const Array& in) {
    return outputs_of({.op = ops::Activation{.function = function}, .shapes = {{{rows, columns}, DType::F64}}}, {in},
                      {size})[0];
  };
  const std::function<double(double)> gelu = [](double v) {
    return 0.5 * v * (1 + std::tanh(std::sqrt(2 / M_PI) * (v + 0.044715 * v * v * v)));
  };
  for (std::int64_t i = 0; i < size; ++i) {
    EXPECT_NEAR(run(Function::Gelu, x).at(i), gelu(x.at(i)), 1e-15);
    EXPECT_EQ(run(Function::Relu, x).at(i), std::max(0.0, x.at(i)));
    EXPECT_NEAR(run(Function::Tanh, x).at(i), std::tanh(x.at(i)), 1e-15);
    const double gate = gated.at(i / columns * 2 * columns + i % columns);
    const double up = gated.at(i / columns * 2 * columns + columns + i % columns);
    EXPECT_NEAR(run(Function::SwiGlu, gated).at(i), gate / (1 + std::exp(-gate)) * up, 1e-14);
  }
  // Far from zero GELU is x or 0, with a slope of 1 or 0.
  const Array far({-60.0, 60.0, -1e4, 1e4}, DType::F64), ones({1, 1, 1, 1}, DType::F64);
  Compute what{.op = ops::Activation{.function = ops::Activation::Function::Gelu}, .shapes = {{{1, 4}, DType::F64}}};
  EXPECT_EQ(outputs_of(what, {far}, {4})[0].values(), (std::vector<double>{0, 60, 0, 1e4}));
  what.phase = Phase::InputGrad;
  EXPECT_EQ(outputs_of(what, {ones, far}, {4})[0].values(), (std::vector<double>{0, 1, 0, 1}));
}

TEST(HostAdd, InputsBiasAndGradients) {
  const std::int64_t rows = 3, h = 4, size = rows * h;
  const Array a = random_array(size, 1), b = random_array(size, 2), c = random_array(size, 3), bias = random_array(h, 4);
  Compute what{.op = ops::Add{}, .shapes = {{{1, rows, h}, DType::F64}}};
  const Array two = outputs_of(what, {a, b}, {size})[0], three = outputs_of(what, {a, b, c}, {size})[0];
  const Array with_bias = outputs_of(what, {a, b, bias}, {size})[0];
  for (std::int64_t i = 0; i < size; ++i) {
    EXPECT_DOUBLE_EQ(two.at(i), a.at(i) + b.at(i));
    EXPECT_NEAR(three.at(i), a.at(i) + b.at(i) + c.at(i), 1e-15);
    EXPECT_NEAR(with_bias.at(i), a.at(i) + b.at(i) + bias.at(i % h), 1e-15);
  }
  what.phase = Phase::InputGrad, what.accumulate = true;  // "add gradients"
  std::vector<Array> reads = {a}, writes = {b};
  run_on(what, reads, writes);
  EXPECT_EQ(writes[0].values(), two.values());
}

TEST(HostAdd, CastAndZero) {
  const Array x = random_array(3000, 1, DType::F32);
  std::vector<Array> reads = {x}, writes = {Array(3000, DType::BF16)};
  run_on({.op = ops::Cast{}}, reads, writes);
  EXPECT_EQ(writes[0].values(), Array(x.values(), DType::BF16).values());
  reads.clear();
  run_on({.op = ops::Zero{}}, reads, writes);
  EXPECT_EQ(writes[0].values(), std::vector<double>(3000, 0.0));
}

}  // namespace
}  // namespace foreshard::host_rows_test
