#include <cmath>

#include "exec/arithmetic/host_math.h"
#include "exec/host/host_kernel.h"

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

// y = cap tanh(x / cap); its slope is 1 - (y / cap)^2.
template <class T>
Kernel<T> capped(const Form& form, std::int64_t size, double by) {
  if (!(by > 0)) form.refuse("cap " + std::to_string(by), "a positive number");
  const T cap = static_cast<T>(by), inverse = static_cast<T>(1 / by);
  if (form.forward()) {
    form.expect({size}, {size});
    return {.run = [size, cap, inverse](const Call<T>& call) {
      for (std::int64_t i = 0; i < size; ++i) call.out[0][i] = cap * std::tanh(call.in[0][i] * inverse);
    }};
  }
  form.expect({size, size}, {size});
  const bool add = form.what.accumulate;
  return {.run = [size, inverse, add](const Call<T>& call) {
    const T *dy = call.in[0], *y = call.in[1];
    T* dx = call.out[0];
    for (std::int64_t i = 0; i < size; ++i) dx[i] = (add ? dx[i] : T(0)) + dy[i] * (T(1) - y[i] * inverse * (y[i] * inverse));
  }};
}

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

// Gated ones: y of gate and up; the backward writes both slopes. x = [gate, up] along the columns.

// Shazeer 2020: y = silu(gate) up, silu(g) = g sigmoid(g).
struct SwiGlu {
  template <class T>
  static T value(T gate, T up) {
    return gate * sigmoid(gate) * up;
  }
  template <class T>
  static void slopes(T gate, T up, T& of_gate, T& of_up) {
    const T s = sigmoid(gate), silu = gate * s;
    of_gate = up * (s + silu * (T(1) - s)), of_up = silu;
  }
};

struct GeGlu {
  template <class T>
  static T value(T gate, T up) {
    return Gelu::value(gate) * up;
  }
  template <class T>
  static void slopes(T gate, T up, T& of_gate, T& of_up) {
    of_gate = Gelu::slope(gate) * up, of_up = Gelu::value(gate);
  }
};

// gpt-oss: (u + 1) g sigmoid(1.702 g) of g = min(gate, 7) and u = up clamped to +-7.
struct ClampedSwiGlu {
  static constexpr double kLimit = 7, kSteep = 1.702;
  template <class T>
  static T clamped(T up) {
    return up > T(kLimit) ? T(kLimit) : (up < T(-kLimit) ? T(-kLimit) : up);
  }
  template <class T>
  static T value(T gate, T up) {
    const T g = gate > T(kLimit) ? T(kLimit) : gate;
    return (clamped(up) + T(1)) * g * sigmoid(T(kSteep) * g);
  }
  template <class T>
  static void slopes(T gate, T up, T& of_gate, T& of_up) {
    const T g = gate > T(kLimit) ? T(kLimit) : gate, s = sigmoid(T(kSteep) * g);
    of_gate = gate > T(kLimit) ? T(0) : (clamped(up) + T(1)) * (s + T(kSteep) * g * s * (T(1) - s));
    of_up = up > T(kLimit) || up < T(-kLimit) ? T(0) : g * s;
  }
};

template <class Function, class T>
void gated_row(const T* x, std::int64_t columns, T* y) {
  const T *gate = x, *up = x + columns;
#pragma omp simd
  for (std::int64_t c = 0; c < columns; ++c) y[c] = Function::value(gate[c], up[c]);
}

template <class Function, class T>
void gated_row_grad(const T* dy, const T* x, std::int64_t columns, T keep, T* dx) {
  const T *gate = x, *up = x + columns;
  T *dgate = dx, *dup = dx + columns;
#pragma omp simd
  for (std::int64_t c = 0; c < columns; ++c) {
    T of_gate, of_up;
    Function::slopes(gate[c], up[c], of_gate, of_up);
    const T old_gate = keep == 0 ? T(0) : dgate[c], old_up = keep == 0 ? T(0) : dup[c];
    dgate[c] = old_gate + dy[c] * of_gate;
    dup[c] = old_up + dy[c] * of_up;
  }
}

template <class Function, class T>
Kernel<T> gated(const Form& form, std::int64_t rows, std::int64_t columns) {
  const std::int64_t size = rows * columns;
  if (form.forward()) {
    form.expect({2 * size}, {size});
    return {.run = [rows, columns](const Call<T>& call) {
      for (std::int64_t r = 0; r < rows; ++r)
        gated_row<Function>(call.in[0] + 2 * r * columns, columns, call.out[0] + r * columns);
    }};
  }
  form.expect({size, 2 * size}, {2 * size});
  const T keep = form.what.accumulate ? T(1) : T(0);
  return {.run = [rows, columns, keep](const Call<T>& call) {
    for (std::int64_t r = 0; r < rows; ++r)
      gated_row_grad<Function>(call.in[0] + r * columns, call.in[1] + 2 * r * columns, columns, keep,
                               call.out[0] + 2 * r * columns);
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
    case ops::Activation::Function::SwiGlu: return gated<SwiGlu, T>(form, dims[0], dims[1]);
    case ops::Activation::Function::GeGlu: return gated<GeGlu, T>(form, dims[0], dims[1]);
    case ops::Activation::Function::ClampedSwiGlu: return gated<ClampedSwiGlu, T>(form, dims[0], dims[1]);
    case ops::Activation::Function::Cap: return capped<T>(form, size, form.as<ops::Activation>().cap);
  }
  return {};
}

template <class T>
Kernel<T> make_scale(const Form& form) {
  const std::int64_t size = size_of_dims(form.dims(0));
  form.expect({size}, {size});
  const T factor = static_cast<T>(form.as<ops::Scale>().factor);
  const bool add = form.what.accumulate;
  return {.run = [size, factor, add](const Call<T>& call) { scale_into(call.in[0], factor, size, add, call.out[0]); }};
}

template Kernel<float> make_scale(const Form&);
template Kernel<double> make_scale(const Form&);
template Kernel<float> make_activation(const Form&);
template Kernel<double> make_activation(const Form&);

}  // namespace foreshard::host
