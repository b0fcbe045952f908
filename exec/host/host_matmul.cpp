// Linear layers: y [m, n] = x [m, k] w [n, k]^T (+ bias). Two outputs are the columns of y one after the other.
#include <algorithm>

#include "core/base/error.h"
#include "exec/host/host_blas.h"
#include "exec/host/host_kernel.h"

namespace foreshard::host {

namespace {

struct LinearSizes {
  std::int64_t m = 0, n = 0, k = 0;
  std::vector<std::int64_t> columns = {};  // of the parts of y
  bool first_token = false;                // x has more rows: those of the other positions follow
};

LinearSizes linear_sizes(const Form& form) {
  const auto& dims = form.dims(0, 4);
  LinearSizes sizes{.m = dims[1], .n = dims[2], .k = dims[3], .first_token = form.as<ops::MatMul>().first_token};
  const std::span<const Operand> y = form.forward() ? form.writes : form.reads;
  std::int64_t columns = 0;
  if (!y.empty() && y[0].elements >= sizes.m * sizes.n) {
    sizes.columns = {sizes.n};
    return sizes;
  }
  for (std::size_t i = 0; i < y.size() && columns < sizes.n; ++i) {
    sizes.columns.push_back(y[i].elements / sizes.m);
    columns += sizes.columns.back();
  }
  if (columns != sizes.n) form.refuse("outputs of " + std::to_string(columns) + " columns", std::to_string(sizes.n));
  return sizes;
}

template <class T>
void fill_rows(const T* bias, std::int64_t rows, std::int64_t columns, T* out) {
  for (std::int64_t r = 0; r < rows; ++r) std::copy_n(bias, columns, out + r * columns);
}

template <class T>
Kernel<T> linear_forward(const Form& form, const LinearSizes& sizes) {
  const bool bias = form.reads.size() == 3;
  std::vector<std::int64_t> reads = {sizes.m * sizes.k, sizes.n * sizes.k}, writes;
  if (bias) reads.push_back(sizes.n);
  for (const std::int64_t columns : sizes.columns) writes.push_back(sizes.m * columns);
  form.expect(reads, writes);
  return {.run = [sizes, bias](const Call<T>& call) {
    std::int64_t at = 0;
    for (std::size_t part = 0; part < sizes.columns.size(); ++part) {
      const std::int64_t columns = sizes.columns[part];
      if (bias) fill_rows(call.in[2] + at, sizes.m, columns, call.out[part]);
      multiply({.m = sizes.m,
                .n = columns,
                .k = sizes.k,
                .a = call.in[0],
                .lda = sizes.k,
                .b = call.in[1] + at * sizes.k,
                .ldb = sizes.k,
                .transpose_b = true,
                .c = call.out[part],
                .ldc = columns,
                .beta = T(bias ? 1 : 0)});
      at += columns;
    }
  }};
}

template <class T>
Kernel<T> linear_input_grad(const Form& form, const LinearSizes& sizes) {
  const std::size_t parts = sizes.columns.size();
  const bool bare = form.reads.size() == parts + 1;  // x and the bias, which a linear layer does not need here, are left out
  const std::size_t weight = bare ? parts : parts + 1;
  std::vector<std::int64_t> reads;
  for (const std::int64_t columns : sizes.columns) reads.push_back(sizes.m * columns);
  if (!bare) reads.push_back(0);
  reads.push_back(sizes.n * sizes.k);
  if (form.reads.size() == reads.size() + 1) reads.push_back(sizes.n);
  form.expect(reads, {sizes.m * sizes.k});
  const bool accumulate = form.what.accumulate;
  return {.run = [sizes, parts, weight, accumulate](const Call<T>& call) {
    if (sizes.first_token && !accumulate) std::fill_n(call.out[0], call.writes[0].elements, T(0));
    std::int64_t at = 0;
    for (std::size_t part = 0; part < parts; ++part) {
      const std::int64_t columns = sizes.columns[part];
      multiply({.m = sizes.m,
                .n = sizes.k,
                .k = columns,
                .a = call.in[part],
                .lda = columns,
                .b = call.in[weight] + at * sizes.k,
                .ldb = sizes.k,
                .c = call.out[0],
                .ldc = sizes.k,
                .beta = T(accumulate || part > 0 ? 1 : 0)});
      at += columns;
    }
  }};
}

template <class T>
Kernel<T> linear_weight_grad(const Form& form, LinearSizes sizes) {
  const std::size_t parts = sizes.columns.size();
  const bool bias = form.writes.size() == 2, accumulate = form.what.accumulate;
  std::vector<std::int64_t> reads, writes = {sizes.n * sizes.k};
  for (const std::int64_t columns : sizes.columns) reads.push_back(sizes.m * columns);
  reads.push_back(sizes.m * sizes.k);
  if (bias) writes.push_back(sizes.n);
  form.expect(reads, writes);
  return {.run = [sizes, parts, bias, accumulate](const Call<T>& call) {
    if (bias && !accumulate) std::fill_n(call.out[1], sizes.n, T(0));
    std::int64_t at = 0;
    for (std::size_t part = 0; part < parts; ++part) {
      const std::int64_t columns = sizes.columns[part];
      multiply({.m = columns,
                .n = sizes.k,
                .k = sizes.m,
                .a = call.in[part],
                .lda = columns,
                .transpose_a = true,
                .b = call.in[parts],
                .ldb = sizes.k,
                .c = call.out[0] + at * sizes.k,
                .ldc = sizes.k,
                .beta = T(accumulate ? 1 : 0)});
      if (bias) add_column_sums(call.in[part], sizes.m, columns, call.out[1] + at);
      at += columns;
    }
  }};
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
