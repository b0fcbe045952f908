// Linear layers: y [m, n] = x [m, k] w [n, k]^T (+ bias). Two outputs are the columns of y one after the other.
//
// Of shapes in fp8 the factors are rounded to 8 bits, each with a scale of its own: values and weights to E4M3, gradients to E5M2. Products are summed
// and stored as those of 16 bits; a bias and its gradient are not touched.
#include "exec/host/host_matmul.h"

#include <algorithm>
#include <cmath>

#include "core/base/error.h"
#include "core/base/float8.h"
#include "exec/arithmetic/host_blas.h"

namespace foreshard::host {

LinearSizes linear_sizes(const Form& form) {
  const auto& dims = form.dims(0, 4);
  LinearSizes sizes{.m = dims[1], .n = dims[2], .k = dims[3], .first_token = form.as<ops::MatMul>().first_token};
  if (form.what.shapes[0].dtype == DType::F4)
    form.refuse("a product in nvfp4, which is simulated only", "fp8 or a wider format");
  sizes.eight_bits = form.what.shapes[0].dtype == DType::F8;
  const std::span<const Operand> y = form.forward() ? form.writes : form.reads;
  if (!y.empty() && y[0].elements >= sizes.m * sizes.n) {
    sizes.columns = {sizes.n};
    return sizes;
  }
  std::int64_t columns = 0;
  for (std::size_t i = 0; i < y.size() && columns < sizes.n; ++i) {
    sizes.columns.push_back(y[i].elements / sizes.m);
    columns += sizes.columns.back();
  }
  if (columns != sizes.n) form.refuse("outputs of " + std::to_string(columns) + " columns", std::to_string(sizes.n));
  return sizes;
}

static std::vector<std::int64_t> part_sizes(const LinearSizes& sizes) {
  std::vector<std::int64_t> parts;
  for (const std::int64_t columns : sizes.columns) parts.push_back(sizes.m * columns);
  return parts;
}

bool expect_linear_forward(const Form& form, const LinearSizes& sizes) {
  const bool bias = form.reads.size() == 3;
  std::vector<std::int64_t> reads = {sizes.m * sizes.k, sizes.n * sizes.k};
  if (bias) reads.push_back(sizes.n);
  form.expect(reads, part_sizes(sizes));
  return bias;
}

LinearInputGrad expect_linear_input_grad(const Form& form, const LinearSizes& sizes) {
  const std::size_t parts = sizes.columns.size();
  const bool bare = form.reads.size() == parts + 1;
  std::vector<std::int64_t> reads = part_sizes(sizes);
  if (!bare) reads.push_back(0);
  reads.push_back(sizes.n * sizes.k);
  if (form.reads.size() == reads.size() + 1) reads.push_back(sizes.n);
  form.expect(reads, {sizes.m * sizes.k});
  return {.parts = parts, .weight = bare ? parts : parts + 1};
}

bool expect_linear_weight_grad(const Form& form, const LinearSizes& sizes) {
  const bool bias = form.writes.size() == 2;
  std::vector<std::int64_t> reads = part_sizes(sizes), writes = {sizes.n * sizes.k};
  reads.push_back(sizes.m * sizes.k);
  if (bias) writes.push_back(sizes.n);
  form.expect(reads, writes);
  return bias;
}

namespace {

// Elements of scratch memory for two factors in 8 bits.
std::int64_t scratch_of(const LinearSizes& sizes, std::int64_t a, std::int64_t b) { return sizes.eight_bits ? a + b : 0; }

template <class T>
void fill_rows(const T* bias, std::int64_t rows, std::int64_t columns, T* out) {
  for (std::int64_t r = 0; r < rows; ++r) std::copy_n(bias, columns, out + r * columns);
}

// x, or what stands for it in 8 bits, at `to`.
template <class T>
const T* factor(bool eight_bits, const T* x, std::int64_t count, Float8 format, T* to) {
  if (!eight_bits) return x;
  float largest = 0;
  for (std::int64_t i = 0; i < count; ++i) {
    const float magnitude = std::abs(static_cast<float>(x[i]));
    largest = magnitude <= largest ? largest : magnitude;  // of NaN: NaN
  }
  const float scale = float8_scale(largest, format);
  for (std::int64_t i = 0; i < count; ++i) to[i] = static_cast<T>(float8_rounded(static_cast<float>(x[i]), scale, format));
  return to;
}

template <class T>
Kernel<T> linear_forward(const Form& form, const LinearSizes& sizes) {
  const bool bias = expect_linear_forward(form, sizes);
  const auto run = [sizes, bias](const Call<T>& call) {
    const T* x = factor(sizes.eight_bits, call.in[0], sizes.m * sizes.k, Float8::E4M3, call.scratch);
    const T* w = factor(sizes.eight_bits, call.in[1], sizes.n * sizes.k, Float8::E4M3, call.scratch + sizes.m * sizes.k);
    std::int64_t at = 0;
    for (std::size_t part = 0; part < sizes.columns.size(); ++part) {
      const std::int64_t columns = sizes.columns[part];
      if (bias) fill_rows(call.in[2] + at, sizes.m, columns, call.out[part]);
      multiply({.m = sizes.m,
                .n = columns,
                .k = sizes.k,
                .a = x,
                .lda = sizes.k,
                .b = w + at * sizes.k,
                .ldb = sizes.k,
                .transpose_b = true,
                .c = call.out[part],
                .ldc = columns,
                .beta = T(bias ? 1 : 0)});
      at += columns;
    }
  };
  return {.run = run, .scratch = scratch_of(sizes, sizes.m * sizes.k, sizes.n * sizes.k)};
}

template <class T>
Kernel<T> linear_input_grad(const Form& form, const LinearSizes& sizes) {
  const auto [parts, weight] = expect_linear_input_grad(form, sizes);
  const bool accumulate = form.what.accumulate;
  const auto run = [sizes, parts = parts, weight = weight, accumulate](const Call<T>& call) {
    const T* w = factor(sizes.eight_bits, call.in[weight], sizes.n * sizes.k, Float8::E4M3, call.scratch);
    if (sizes.first_token && !accumulate) std::fill_n(call.out[0], call.writes[0].elements, T(0));
    std::int64_t at = 0;
    for (std::size_t part = 0; part < parts; ++part) {
      const std::int64_t columns = sizes.columns[part];
      multiply({.m = sizes.m,
                .n = sizes.k,
                .k = columns,
                .a = factor(sizes.eight_bits, call.in[part], sizes.m * columns, Float8::E5M2, call.scratch + sizes.n * sizes.k),
                .lda = columns,
                .b = w + at * sizes.k,
                .ldb = sizes.k,
                .c = call.out[0],
                .ldc = sizes.k,
                .beta = T(accumulate || part > 0 ? 1 : 0)});
      at += columns;
    }
  };
  return {.run = run, .scratch = scratch_of(sizes, sizes.m * sizes.n, sizes.n * sizes.k)};
}

template <class T>
Kernel<T> linear_weight_grad(const Form& form, LinearSizes sizes) {
  const std::size_t parts = sizes.columns.size();
  const bool bias = expect_linear_weight_grad(form, sizes), accumulate = form.what.accumulate;
  const auto run = [sizes, parts, bias, accumulate](const Call<T>& call) {
    const T* x = factor(sizes.eight_bits, call.in[parts], sizes.m * sizes.k, Float8::E4M3, call.scratch);
    if (bias && !accumulate) std::fill_n(call.out[1], sizes.n, T(0));
    std::int64_t at = 0;
    for (std::size_t part = 0; part < parts; ++part) {
      const std::int64_t columns = sizes.columns[part];
      multiply({.m = columns,
                .n = sizes.k,
                .k = sizes.m,
                .a = factor(sizes.eight_bits, call.in[part], sizes.m * columns, Float8::E5M2, call.scratch + sizes.m * sizes.k),
                .lda = columns,
                .transpose_a = true,
                .b = x,
                .ldb = sizes.k,
                .c = call.out[0] + at * sizes.k,
                .ldc = sizes.k,
                .beta = T(accumulate ? 1 : 0)});
      if (bias) add_column_sums(call.in[part], sizes.m, columns, call.out[1] + at);
      at += columns;
    }
  };
  return {.run = run, .scratch = scratch_of(sizes, sizes.m * sizes.n, sizes.m * sizes.k)};
}

}  // namespace

template <class T>
Kernel<T> make_matmul(const Form& form) {
  const LinearSizes sizes = linear_sizes(form);
  if (form.forward()) return linear_forward<T>(form, sizes);
  if (form.what.phase == Phase::InputGrad) return linear_input_grad<T>(form, sizes);
  if (form.what.phase == Phase::WeightGrad) return linear_weight_grad<T>(form, sizes);
  form.refuse("this phase", "forward, recompute, input gradient or weight gradient");
}

template Kernel<float> make_matmul(const Form&);
template Kernel<double> make_matmul(const Form&);

}  // namespace foreshard::host
