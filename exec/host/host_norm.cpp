// LayerNorm (Ba et al. 2016) and RMSNorm (Zhang & Sennrich 2019). The backward computes the statistics again from the input.
#include <algorithm>
#include <cmath>

#include "exec/host/host_kernel.h"

namespace foreshard::host {

namespace {

struct NormSizes {
  std::int64_t rows = 0, h = 0;
  double eps = 0;
  bool centred = true;  // LayerNorm: less the mean, plus a bias
  double one = 0;       // what is added to the weights
};

template <class T>
struct RowStatistics {
  T mean, inverse;  // inverse of the standard deviation (root mean square)
};

template <class T>
RowStatistics<T> statistics(const T* x, const NormSizes& n) {
  T mean = 0, squares = 0;
  if (n.centred) {
#pragma omp simd reduction(+ : mean)
    for (std::int64_t c = 0; c < n.h; ++c) mean += x[c];
    mean /= static_cast<T>(n.h);
  }
#pragma omp simd reduction(+ : squares)
  for (std::int64_t c = 0; c < n.h; ++c) squares += (x[c] - mean) * (x[c] - mean);
  return {mean, T(1) / std::sqrt(squares / static_cast<T>(n.h) + static_cast<T>(n.eps))};
}

template <class T>
void norm_row(const T* x, const T* w, const T* b, const NormSizes& n, T* y) {
  const RowStatistics<T> s = statistics(x, n);
  const T mean = s.mean, inverse = s.inverse, one = static_cast<T>(n.one);
  if (n.centred) {
#pragma omp simd
    for (std::int64_t c = 0; c < n.h; ++c) y[c] = (x[c] - mean) * inverse * (one + w[c]) + b[c];
  } else {
#pragma omp simd
    for (std::int64_t c = 0; c < n.h; ++c) y[c] = x[c] * inverse * (one + w[c]);
  }
}

// With u = (x - mean) inverse and g = dy w:  dx = inverse (g - mean(g) - u mean(g u)); without the mean for RMSNorm.
template <class T>
void norm_row_input_grad(const T* dy, const T* x, const T* w, const RowStatistics<T>& s, const NormSizes& n, bool add, T* dx) {
  const T mean = s.mean, inverse = s.inverse, one = static_cast<T>(n.one);
  T sum = 0, projection = 0;
#pragma omp simd reduction(+ : sum, projection)
  for (std::int64_t c = 0; c < n.h; ++c) {
    const T g = dy[c] * (one + w[c]);
    sum += g;
    projection += g * ((x[c] - mean) * inverse);
  }
  sum = n.centred ? sum / static_cast<T>(n.h) : T(0);
  projection /= static_cast<T>(n.h);
#pragma omp simd
  for (std::int64_t c = 0; c < n.h; ++c) {
    const T u = (x[c] - mean) * inverse;
    dx[c] = (add ? dx[c] : T(0)) + inverse * (dy[c] * (one + w[c]) - sum - u * projection);
  }
}

template <class T>
void norm_row_weight_grad(const T* dy, const T* x, const RowStatistics<T>& s, const NormSizes& n, T* dw, T* db) {
  const T mean = s.mean, inverse = s.inverse;
#pragma omp simd
  for (std::int64_t c = 0; c < n.h; ++c) dw[c] += dy[c] * ((x[c] - mean) * inverse);
  if (!db) return;
#pragma omp simd
  for (std::int64_t c = 0; c < n.h; ++c) db[c] += dy[c];
}

template <class T>
Kernel<T> norm_backward(const Form& form, NormSizes n) {
  const std::int64_t size = n.rows * n.h;
  const std::size_t weights = n.centred ? 2 : 1;
  const bool frozen = form.what.phase == Phase::InputGrad;         // the weights want no gradients
  const bool input = frozen || form.writes.size() == weights + 1;  // the input wants a gradient
  std::vector<std::int64_t> reads = {size, size}, writes;
  if (input) writes.push_back(size);
  reads.insert(reads.end(), weights, n.h);
  if (!frozen) writes.insert(writes.end(), weights, n.h);
  form.expect(reads, writes);
  const bool add = form.what.accumulate, add_weights = form.what.accumulate_weights;
  return {.run = [n, weights, frozen, input, add, add_weights](const Call<T>& call) {
    T* dw = frozen ? nullptr : call.out[input ? 1 : 0];
    T* db = dw && weights == 2 ? call.out[input ? 2 : 1] : nullptr;
    if (dw && !add_weights) {
      std::fill_n(dw, n.h, T(0));
      if (db) std::fill_n(db, n.h, T(0));
    }
    for (std::int64_t r = 0; r < n.rows; ++r) {
      const T *dy = call.in[0] + r * n.h, *x = call.in[1] + r * n.h;
      const RowStatistics<T> s = statistics(x, n);
      if (dw) norm_row_weight_grad(dy, x, s, n, dw, db);
      if (input) norm_row_input_grad(dy, x, call.in[2], s, n, add, call.out[0] + r * n.h);
    }
  }};
}

}  // namespace

template <class T>
Kernel<T> make_norm(const Form& form) {
  const auto& dims = form.dims(0, 2);
  const auto& op = form.as<ops::Norm>();
  const bool centred = op.kind == NormKind::LayerNorm;
  const NormSizes n{.rows = dims[0], .h = dims[1], .eps = op.eps, .centred = centred, .one = op.around_one ? 1.0 : 0.0};
  if (form.what.phase == Phase::Backward || form.what.phase == Phase::InputGrad) return norm_backward<T>(form, n);
  if (!form.forward()) form.refuse("this phase", "forward, recompute, backward or input gradient");
  const std::int64_t size = n.rows * n.h;
  form.expect(centred ? std::vector{size, n.h, n.h} : std::vector{size, n.h}, {size});
  return {.run = [n](const Call<T>& call) {
    for (std::int64_t r = 0; r < n.rows; ++r)
      norm_row(call.in[0] + r * n.h, call.in[1], n.centred ? call.in[2] : nullptr, n, call.out[0] + r * n.h);
  }};
}

template Kernel<float> make_norm(const Form&);
template Kernel<double> make_norm(const Form&);

}  // namespace foreshard::host
