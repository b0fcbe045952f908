// Matrix products and linear layers against sums written out.
#include "exec/host/host_matmul.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

#include "core/base/error.h"
#include "core/base/float8.h"
#include "exec/arithmetic/host_blas.h"
#include "tests/exec/host_arrays.h"

namespace foreshard::host_matmul_test {
namespace {

template <class T>
std::vector<T> numbers(std::int64_t count, std::uint64_t seed) {
  std::vector<T> out;
  for (const double x : random_array(count, seed).values()) out.push_back(static_cast<T>(x));
  return out;
}

// All transposes, leading dimensions larger than the rows, alpha and beta; what lies between the rows stays.
template <class T>
void expect_products(double tolerance) {
  const std::int64_t m = 5, n = 7, k = 9, extra = 3;
  for (const bool ta : {false, true})
    for (const bool tb : {false, true})
      for (const double beta : {0.0, 1.0, -0.5}) {
        const std::int64_t lda = (ta ? m : k) + extra, ldb = (tb ? k : n) + extra, ldc = n + extra;
        const std::vector<T> a = numbers<T>((ta ? k : m) * lda, 1), b = numbers<T>((tb ? n : k) * ldb, 2);
        const std::vector<T> before = numbers<T>(m * ldc, 3);
        std::vector<T> fast = before, plain = before;
        host::Product<T> product{.m = m,
                                 .n = n,
                                 .k = k,
                                 .a = a.data(),
                                 .lda = lda,
                                 .transpose_a = ta,
                                 .b = b.data(),
                                 .ldb = ldb,
                                 .transpose_b = tb,
                                 .c = fast.data(),
                                 .ldc = ldc,
                                 .alpha = T(2),
                                 .beta = static_cast<T>(beta)};
        host::multiply(product);
        product.c = plain.data();
        host::multiply_plainly(product);
        for (std::int64_t i = 0; i < m; ++i)
          for (std::int64_t j = 0; j < ldc; ++j) {
            const auto at = static_cast<std::size_t>(i * ldc + j);
            double expected = before[at];
            if (j < n) {
              expected *= beta;
              for (std::int64_t l = 0; l < k; ++l)
                expected += 2.0 * a[static_cast<std::size_t>(ta ? l * lda + i : i * lda + l)] *
                            b[static_cast<std::size_t>(tb ? j * ldb + l : l * ldb + j)];
            }
            EXPECT_NEAR(fast[at], expected, tolerance) << ta << tb << beta;
            EXPECT_NEAR(plain[at], expected, tolerance) << ta << tb << beta;
          }
      }
}

TEST(HostBlas, ProductsInFloat) { expect_products<float>(2e-5); }
TEST(HostBlas, ProductsInDouble) { expect_products<double>(1e-13); }

TEST(HostBlas, ZeroBetaDoesNotReadTheResult) {
  const double a = 2, b = 3;
  double c = std::nan(""), plain = std::nan("");
  host::multiply({.m = 1, .n = 1, .k = 1, .a = &a, .lda = 1, .b = &b, .ldb = 1, .c = &c, .ldc = 1});
  host::multiply_plainly({.m = 1, .n = 1, .k = 1, .a = &a, .lda = 1, .b = &b, .ldb = 1, .c = &plain, .ldc = 1});
  EXPECT_EQ(c, 6);
  EXPECT_EQ(plain, 6);
}

TEST(HostBlas, SaysWhatItIs) {
  const std::string name = host::blas_name();
  EXPECT_TRUE(name.starts_with("OpenBLAS ") || name == "plain loops") << name;
}

// y = x w^T + bias
std::vector<double> linear(const Array& x, const Array& w, const Array& bias, std::int64_t m, std::int64_t n, std::int64_t k) {
  std::vector<double> y;
  for (std::int64_t i = 0; i < m; ++i)
    for (std::int64_t j = 0; j < n; ++j) {
      double sum = bias.size() > 0 ? bias.at(j) : 0;
      for (std::int64_t l = 0; l < k; ++l) sum += x.at(i * k + l) * w.at(j * k + l);
      y.push_back(sum);
    }
  return y;
}

TEST(HostLinear, ForwardWithAndWithoutBias) {
  const std::int64_t m = 4, n = 6, k = 5;
  const Array x = random_array(m * k, 1), w = random_array(n * k, 2), bias = random_array(n, 3);
  const Compute what{.op = ops::MatMul{}, .shapes = {{{1, m, n, k}, DType::F64}}};
  EXPECT_LT(relative_error(outputs_of(what, {x, w, bias}, {m * n})[0].values(), linear(x, w, bias, m, n, k)), 1e-14);
  EXPECT_LT(relative_error(outputs_of(what, {x, w}, {m * n})[0].values(), linear(x, w, {}, m, n, k)), 1e-14);
}

// Two outputs are columns [0, 2) and [2, 6) of the one; gradients likewise.
TEST(HostLinear, TwoOutputsAreTheColumnsOfOne) {
  const std::int64_t m = 4, n = 6, k = 5, first = 2;
  const Array x = random_array(m * k, 1), w = random_array(n * k, 2), bias = random_array(n, 3), dy = random_array(m * n, 4);
  Compute what{.op = ops::MatMul{}, .shapes = {{{1, m, n, k}, DType::F64}}};
  const auto columns = [&](const Array& y, std::int64_t from, std::int64_t to) {
    Array part(m * (to - from), DType::F64);
    for (std::int64_t i = 0; i < part.size(); ++i) part.set(i, y.at(i / (to - from) * n + from + i % (to - from)));
    return part;
  };
  const Array whole = outputs_of(what, {x, w, bias}, {m * n})[0];
  const std::vector<Array> parts = outputs_of(what, {x, w, bias}, {m * first, m * (n - first)});
  EXPECT_LT(relative_error(parts[0], columns(whole, 0, first)), 1e-14);
  EXPECT_LT(relative_error(parts[1], columns(whole, first, n)), 1e-14);
  const Array da = columns(dy, 0, first), db = columns(dy, first, n);
  what.phase = Phase::InputGrad;
  EXPECT_LT(relative_error(outputs_of(what, {da, db, x, w, bias}, {m * k})[0], outputs_of(what, {dy, x, w, bias}, {m * k})[0]),
            1e-14);
  EXPECT_LT(relative_error(outputs_of(what, {da, db, x, w}, {m * k})[0], outputs_of(what, {dy, x, w}, {m * k})[0]), 1e-14);
  what.phase = Phase::WeightGrad;
  const std::vector<Array> split = outputs_of(what, {da, db, x}, {n * k, n}), one = outputs_of(what, {dy, x}, {n * k, n});
  EXPECT_LT(relative_error(split[0], one[0]), 1e-14);
  EXPECT_LT(relative_error(split[1], one[1]), 1e-14);
}

// Rows are [position, sample]: the first `samples` rows are the first tokens.
TEST(HostLinear, FirstTokenReadsTheFirstRows) {
  const std::int64_t samples = 2, positions = 3, n = 4, k = 5;
  const Array x = random_array(samples * positions * k, 1), w = random_array(n * k, 2);
  Compute what{.op = ops::MatMul{.first_token = true}, .shapes = {{{1, samples, n, k}, DType::F64}}};
  EXPECT_LT(relative_error(outputs_of(what, {x, w}, {samples * n})[0].values(), linear(x, w, {}, samples, n, k)), 1e-14);
  what.phase = Phase::InputGrad;
  const Array dx = outputs_of(what, {random_array(samples * n, 3), x, w}, {x.size()})[0];
  for (std::int64_t i = samples * k; i < dx.size(); ++i) EXPECT_EQ(dx.at(i), 0);
  EXPECT_NE(dx.at(0), 0);
}

// Of shapes in fp8 the factors are what 8 bits hold of them, values and weights in E4M3, gradients in E5M2; all else is as without.
TEST(HostMatMul, FactorsOfEightBits) {
  const std::int64_t m = 6, n = 5, k = 8;
  const auto rounded = [](Array array, Float8 format) {
    double largest = 0;
    for (std::int64_t i = 0; i < array.size(); ++i) largest = std::max(largest, std::abs(array.at(i)));
    const float scale = float8_scale(static_cast<float>(largest), format);
    for (std::int64_t i = 0; i < array.size(); ++i)
      array.set(i, float8_rounded(static_cast<float>(array.at(i)), scale, format));
    return array;
  };
  const auto linear = [&](Phase phase, DType dtype) {
    return Compute{.op = ops::MatMul{}, .phase = phase, .shapes = {{{1, m, n, k}, dtype}}};
  };
  const Array x = random_array(m * k, 1, DType::F32), w = random_array(n * k, 2, DType::F32),
              bias = random_array(n, 3, DType::F32), dy = random_array(m * n, 4, DType::F32);
  const Array x8 = rounded(x, Float8::E4M3), w8 = rounded(w, Float8::E4M3), dy8 = rounded(dy, Float8::E5M2);
  EXPECT_GT(relative_error(x8, x), 1e-3);
  const auto expect = [&](Phase phase, const std::vector<Array>& full, const std::vector<Array>& eighth,
                          const std::vector<std::int64_t>& sizes) {
    const std::vector<Array> found = outputs_of(linear(phase, DType::F8), full, sizes, {}, DType::F32);
    const std::vector<Array> wanted = outputs_of(linear(phase, DType::F32), eighth, sizes, {}, DType::F32);
    EXPECT_LE(relative_error(found[0], wanted[0]), 1e-6);
    return std::pair(found, outputs_of(linear(phase, DType::F32), full, sizes, {}, DType::F32));
  };
  expect(Phase::Forward, {x, w, bias}, {x8, w8, bias}, {m * n});
  expect(Phase::InputGrad, {dy, x, w}, {dy8, x, w8}, {m * k});
  expect(Phase::InputGrad, {dy, w}, {dy8, w8}, {m * k});
  const auto [found, plain] = expect(Phase::WeightGrad, {dy, x}, {dy8, x8}, {n * k, n});
  EXPECT_EQ(found[1].values(), plain[1].values());  // the bias gradient
  EXPECT_GT(relative_error(found[0], plain[0]), 1e-3);
}

// y [4, 6] = x [4, 5] w [6, 5]^T + bias, with y in two parts of 2 and 4 columns.
struct Operands {
  std::vector<Operand> reads = {}, writes = {};

  Operands(std::initializer_list<std::int64_t> read_sizes, std::initializer_list<std::int64_t> write_sizes) {
    for (const std::int64_t size : read_sizes) reads.push_back({.elements = size, .dtype = DType::F32});
    for (const std::int64_t size : write_sizes) writes.push_back({.elements = size, .dtype = DType::F32});
  }
};
Compute linear(Phase phase) { return {.op = ops::MatMul{}, .phase = phase, .shapes = {{{1, 4, 6, 5}, DType::F32}}}; }

TEST(HostMatmul, PartsOfTheOutputAreItsColumns) {
  const Compute forward = linear(Phase::Forward), backward = linear(Phase::InputGrad), weights = linear(Phase::WeightGrad);
  const Operands y({20, 30, 6}, {8, 16});
  const host::Form form{forward, y.reads, y.writes};
  const host::LinearSizes sizes = host::linear_sizes(form);
  EXPECT_EQ(sizes.columns, (std::vector<std::int64_t>{2, 4}));
  EXPECT_TRUE(host::expect_linear_forward(form, sizes));
  const Operands no_bias({20, 30}, {8, 16}), short_bias({20, 30, 5}, {8, 16}), missing({20, 30}, {8, 12});
  EXPECT_FALSE(host::expect_linear_forward({forward, no_bias.reads, no_bias.writes}, sizes));
  EXPECT_THROW(host::expect_linear_forward({forward, short_bias.reads, short_bias.writes}, sizes), Error);
  EXPECT_THROW(host::linear_sizes({forward, missing.reads, missing.writes}), Error);  // five columns

  const Operands whole({8, 16, 20, 30}, {20}), bare({8, 16, 30}, {20});
  EXPECT_EQ(host::expect_linear_input_grad({backward, whole.reads, whole.writes}, sizes).weight, 3U);
  EXPECT_EQ(host::expect_linear_input_grad({backward, bare.reads, bare.writes}, sizes).weight, 2U);
  const Operands sums({8, 16, 20}, {30, 6}), one({8, 16, 20}, {30}), few({8, 16, 19}, {30});
  EXPECT_TRUE(host::expect_linear_weight_grad({weights, sums.reads, sums.writes}, sizes));
  EXPECT_FALSE(host::expect_linear_weight_grad({weights, one.reads, one.writes}, sizes));
  EXPECT_THROW(host::expect_linear_weight_grad({weights, few.reads, few.writes}, sizes), Error);
}

}  // namespace
}  // namespace foreshard::host_matmul_test
