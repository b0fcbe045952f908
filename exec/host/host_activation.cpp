#include <cmath>

#include "exec/host/host_kernel.h"
#include "exec/host/host_math.h"

namespace foreshard::host {

namespace {

// GPT-2's form of GELU (Hendrycks & Gimpel 2016, section 2): 0.5 x (1 + tanh(u)), u = sqrt(2/pi) (x + 0.044715 x^3), which is
// x sigmoid(2 u) because 1 + tanh(u) = 2 sigmoid(2 u).
struct Gelu {
  static constexpr double kTwoRoot = 1.5957691216057307117;  // 2 sqrt(2 / pi)
  template <class T>
  static T value(T x) {
    return x * sigmoid(T(kTwoRoot) * x * (T(1) + T(0.044715) * x * x));
  }
  template <class T>
  static T slope(T x) {
    const T s = sigmoid(T(kTwoRoot) * x * (T(1) + T(0.044715) * x * x));
    return s + x * s * (T(1) - s) * T(kTwoRoot) * (T(1) + T(3 * 0.044715) * x * x);
  }
};

// The saved operand of relu and tanh is their result.
struct Relu {
  template <class T>
  static T value(T x) {
    return x > 0 ? x : T(0);
  }
  template <class T>
  static T slope(T y) {
    return y > 0 ? T(1) : T(0);
  }
};

struct Tanh {
  template <class T>
  static T value(T x) {
    return std::tanh(x);
  }
  template <class T>
  static T slope(T y) {
    return T(1) - y * y;
  }
};

template <class Function, class T>
Kernel<T> elementwise(const Form& form, std::int64_t size) {
  if (form.forward()) {
    form.expect({size}, {size});
    return {.run = [size](const Call<T>& call) {
      const T* x = call.in[0];
      T* y = call.out[0];
#pragma omp simd
      for (std::int64_t i = 0; i < size; ++i) y[i] = Function::value(x[i]);
    }};
  }
  form.expect({size, size}, {size});
  const T keep = form.what.accumulate ? T(1) : T(0);
  return {.run = [size, keep](const Call<T>& call) {
    const T *dy = call.in[0], *saved = call.in[1];
    T* dx = call.out[0];
    if (keep == 0) {
#pragma omp simd
      for (std::int64_t i = 0; i < size; ++i) dx[i] = dy[i] * Function::slope(saved[i]);
    } else {
#pragma omp simd
      for (std::int64_t i = 0; i < size; ++i) dx[i] += dy[i] * Function::slope(saved[i]);
    }
  }};
}

// Shazeer 2020: y = silu(gate) up, silu(g) = g sigmoid(g); x = [gate, up] along the columns.
template <class T>
void swiglu_row(const T* x, std::int64_t columns, T* y) {
  const T *gate = x, *up = x + columns;
#pragma omp simd
  for (std::int64_t c = 0; c < columns; ++c) y[c] = gate[c] * sigmoid(gate[c]) * up[c];
}

template <class T>
void swiglu_row_grad(const T* dy, const T* x, std::int64_t columns, T keep, T* dx) {
  const T *gate = x, *up = x + columns;
  T *dgate = dx, *dup = dx + columns;
#pragma omp simd
  for (std::int64_t c = 0; c < columns; ++c) {
    const T s = sigmoid(gate[c]), silu = gate[c] * s;
    const T old_gate = keep == 0 ? T(0) : dgate[c], old_up = keep == 0 ? T(0) : dup[c];
    dgate[c] = old_gate + dy[c] * up[c] * (s + silu * (T(1) - s));
    dup[c] = old_up + dy[c] * silu;
  }
}

template <class T>
Kernel<T> swiglu(const Form& form, std::int64_t rows, std::int64_t columns) {
  const std::int64_t size = rows * columns;
  if (form.forward()) {
    form.expect({2 * size}, {size});
    return {.run = [rows, columns](const Call<T>& call) {
      for (std::int64_t r = 0; r < rows; ++r) swiglu_row(call.in[0] + 2 * r * columns, columns, call.out[0] + r * columns);
    }};
  }
  form.expect({size, 2 * size}, {2 * size});
  const T keep = form.what.accumulate ? T(1) : T(0);
  return {.run = [rows, columns, keep](const Call<T>& call) {
    for (std::int64_t r = 0; r < rows; ++r)
      swiglu_row_grad(call.in[0] + r * columns, call.in[1] + 2 * r * columns, columns, keep, call.out[0] + 2 * r * columns);
  }};
}

}  // namespace

template <class T>
Kernel<T> make_activation(const Form& form) {
  const auto& dims = form.dims(0, 2);
  const std::int64_t size = dims[0] * dims[1];
  switch (form.as<ops::Activation>().function) {
    case ops::Activation::Function::Gelu: return elementwise<Gelu, T>(form, size);
    case ops::Activation::Function::Relu: return elementwise<Relu, T>(form, size);
    case ops::Activation::Function::Tanh: return elementwise<Tanh, T>(form, size);
    case ops::Activation::Function::SwiGlu: return swiglu<T>(form, dims[0], dims[1]);
  }
  return {};
}

template Kernel<float> make_activation(const Form&);
template Kernel<double> make_activation(const Form&);

}  // namespace foreshard::host
