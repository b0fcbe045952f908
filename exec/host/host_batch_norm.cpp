// Batch normalisation in training (Ioffe & Szegedy 2015) with the statistics of the micro-batch, per channel of [n, c, ...].
#include <algorithm>
#include <cmath>

#include "exec/host/host_kernel.h"

namespace foreshard::host {

namespace {

struct BatchSizes {
  std::int64_t samples = 1, channels = 0, pixels = 1;
  double eps = 0;

  std::int64_t size() const { return samples * channels * pixels; }
};

template <class T>
struct ChannelStatistics {
  T mean, inverse;
};

// Calls body(first element of the channel in a sample) for every sample.
template <class F>
void for_each_plane(const BatchSizes& b, std::int64_t channel, F&& body) {
  for (std::int64_t n = 0; n < b.samples; ++n) body((n * b.channels + channel) * b.pixels);
}

template <class T>
ChannelStatistics<T> statistics(const BatchSizes& b, std::int64_t channel, const T* x) {
  T mean = 0, squares = 0;
  const T count = static_cast<T>(b.samples * b.pixels);
  for_each_plane(b, channel, [&](std::int64_t at) {
    T sum = 0;
#pragma omp simd reduction(+ : sum)
    for (std::int64_t i = 0; i < b.pixels; ++i) sum += x[at + i];
    mean += sum / count;
  });
  for_each_plane(b, channel, [&](std::int64_t at) {
    T sum = 0;
#pragma omp simd reduction(+ : sum)
    for (std::int64_t i = 0; i < b.pixels; ++i) sum += (x[at + i] - mean) * (x[at + i] - mean);
    squares += sum;
  });
  return {mean, T(1) / std::sqrt(squares / count + static_cast<T>(b.eps))};
}

// With u = (x - mean) inverse:  dw = sum(dy u), db = sum(dy), dx = w inverse (dy - db / count - u dw / count).
template <class T>
void channel_backward(const BatchSizes& b, std::int64_t channel, const T* dy, const T* x, T w, bool add, T* dx, T* dw, T* db) {
  const auto [mean, inverse] = statistics(b, channel, x);
  T sum = 0, projection = 0;
  for_each_plane(b, channel, [&, mean = mean, inverse = inverse](std::int64_t at) {
    for (std::int64_t i = 0; i < b.pixels; ++i) {
      sum += dy[at + i];
      projection += dy[at + i] * ((x[at + i] - mean) * inverse);
    }
  });
  *dw += projection;
  *db += sum;
  if (!dx) return;
  const T count = static_cast<T>(b.samples * b.pixels);
  for_each_plane(b, channel, [&, mean = mean, inverse = inverse](std::int64_t at) {
#pragma omp simd
    for (std::int64_t i = 0; i < b.pixels; ++i) {
      const T u = (x[at + i] - mean) * inverse;
      dx[at + i] = (add ? dx[at + i] : T(0)) + w * inverse * (dy[at + i] - sum / count - u * projection / count);
    }
  });
}

template <class T>
Kernel<T> backward(const Form& form, const BatchSizes& b) {
  const bool input = form.writes.size() == 3;
  std::vector<std::int64_t> writes = {b.channels, b.channels};
  if (input) writes.insert(writes.begin(), b.size());
  form.expect({b.size(), b.size(), b.channels, b.channels}, writes);
  const bool add = form.what.accumulate, add_weights = form.what.accumulate_weights;
  return {.run = [b, input, add, add_weights](const Call<T>& call) {
    T *dw = call.out[input ? 1 : 0], *db = call.out[input ? 2 : 1];
    if (!add_weights) std::fill_n(dw, b.channels, T(0)), std::fill_n(db, b.channels, T(0));
    for (std::int64_t c = 0; c < b.channels; ++c)
      channel_backward(b, c, call.in[0], call.in[1], call.in[2][c], add, input ? call.out[0] : nullptr, dw + c, db + c);
  }};
}

}  // namespace

template <class T>
Kernel<T> make_batch_norm(const Form& form) {
  const auto& dims = form.dims(0);
  if (dims.size() < 2) form.refuse("1 dimension", "[n, c, ...]");
  const BatchSizes b{.samples = dims[0],
                     .channels = dims[1],
                     .pixels = size_of_dims(dims) / (dims[0] * dims[1]),
                     .eps = form.as<ops::BatchNorm>().eps};
  if (form.what.phase == Phase::Backward) return backward<T>(form, b);
  if (!form.forward()) form.refuse("this phase", "forward, recompute or backward");
  form.expect({b.size(), b.channels, b.channels}, {b.size()});
  return {.run = [b](const Call<T>& call) {
    for (std::int64_t c = 0; c < b.channels; ++c) {
      const auto [mean, inverse] = statistics(b, c, call.in[0]);
      const T w = call.in[1][c] * inverse, shift = call.in[2][c] - mean * w;
      for_each_plane(b, c, [&](std::int64_t at) {
#pragma omp simd
        for (std::int64_t i = 0; i < b.pixels; ++i) call.out[0][at + i] = call.in[0][at + i] * w + shift;
      });
    }
  }};
}

template Kernel<float> make_batch_norm(const Form&);
template Kernel<double> make_batch_norm(const Form&);

}  // namespace foreshard::host
