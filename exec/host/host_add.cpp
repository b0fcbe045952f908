// Sums, casts, zeros.
#include <algorithm>

#include "exec/arithmetic/host_convert.h"
#include "exec/host/host_kernel.h"

namespace foreshard::host {

namespace {

template <class T>
void add_to(const T* x, std::int64_t size, T* y) {
#pragma omp simd
  for (std::int64_t i = 0; i < size; ++i) y[i] += x[i];
}

// y = sum of the inputs; the last may be a bias, one row that is added to every row.
template <class T>
Kernel<T> add_forward(const Form& form, std::int64_t rows, std::int64_t columns) {
  const std::int64_t size = rows * columns;
  const bool bias = form.reads.size() > 1 && form.reads.back().elements < size;
  const std::size_t inputs = form.reads.size() - (bias ? 1 : 0);
  std::vector<std::int64_t> reads(inputs, size);
  if (bias) reads.push_back(columns);
  form.expect(reads, {size});
  return {.run = [rows, columns, size, inputs, bias](const Call<T>& call) {
    T* y = call.out[0];
    if (y != call.in[0]) std::copy_n(call.in[0], size, y);
    if (bias)
      for (std::int64_t r = 0; r < rows; ++r) add_to(call.in[inputs], columns, y + r * columns);
    for (std::size_t i = 1; i < inputs; ++i) add_to(call.in[i], size, y);
  }};
}

}  // namespace

// InputGrad is the sum of two gradients: writes[0] += reads[0]. WeightGrad is that of the bias: column sums.
template <class T>
Kernel<T> make_add(const Form& form) {
  const auto& dims = form.dims(0);
  const std::int64_t columns = dims.back(), size = size_of_dims(dims);
  const std::int64_t rows = size / columns;
  const bool accumulate = form.what.accumulate;
  if (form.reads.empty()) form.refuse("no reads", "at least one");
  if (form.forward()) return add_forward<T>(form, rows, columns);
  if (form.what.phase == Phase::WeightGrad) {
    form.expect({size}, {columns});
    return {.run = [rows, columns, accumulate](const Call<T>& call) {
      if (!accumulate) std::fill_n(call.out[0], columns, T(0));
      add_column_sums(call.in[0], rows, columns, call.out[0]);
    }};
  }
  form.expect({size}, {size});
  return {.run = [size, accumulate](const Call<T>& call) {
    if (accumulate) return add_to(call.in[0], size, call.out[0]);
    std::copy_n(call.in[0], size, call.out[0]);
  }};
}

template <class T>
Kernel<T> make_cast(const Form& form) {
  form.expect({1}, {form.reads.empty() ? 1 : form.reads[0].elements});
  return {.run =
              [](const Call<T>& call) {
                constexpr std::int64_t chunk = 1024;
                T values[chunk];
                const std::int64_t size = call.reads[0].elements;
                for (std::int64_t at = 0; at < size; at += chunk) {
                  const std::int64_t here = std::min(chunk, size - at);
                  load(call.reads[0], at, here, values);
                  store(values, here, call.writes[0], at);
                }
              },
          .raw = true};
}

template <class T>
Kernel<T> make_zero(const Form&) {
  return {.run =
              [](const Call<T>& call) {
                for (const Operand& operand : call.writes)
                  std::fill_n(operand.data, operand.elements * size_of(operand.dtype).value, std::byte{0});
              },
          .raw = true};
}

template Kernel<float> make_add(const Form&);
template Kernel<double> make_add(const Form&);
template Kernel<float> make_cast(const Form&);
template Kernel<double> make_cast(const Form&);
template Kernel<float> make_zero(const Form&);
template Kernel<double> make_zero(const Form&);

}  // namespace foreshard::host
