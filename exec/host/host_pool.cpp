// Maximum and average over a sliding window. The average counts the padding as zeros, like PyTorch's AvgPool2d.
#include <algorithm>

#include "exec/host/host_kernel.h"
#include "exec/host/host_window.h"

namespace foreshard::host {

namespace {

// Calls body(channel's first input element, output element, output row, output column).
template <class F>
void for_each_output(const Window& w, F&& body) {
  std::int64_t out = 0;
  for (std::int64_t c = 0; c < w.samples * w.channels; ++c)
    for (std::int64_t y = 0; y < w.out_height; ++y)
      for (std::int64_t x = 0; x < w.out_width; ++x, ++out) body(c * w.picture(), out, y, x);
}

// Input element of the first maximum in the window.
template <class T>
std::int64_t largest(const Window& w, const T* picture, std::int64_t y, std::int64_t x) {
  std::int64_t best = w.first(y) * w.width + w.first(x);
  for (std::int64_t i = w.first(y); i < w.last(y, w.height); ++i)
    for (std::int64_t j = w.first(x); j < w.last(x, w.width); ++j)
      if (picture[i * w.width + j] > picture[best]) best = i * w.width + j;
  return best;
}

template <class T>
T sum(const Window& w, const T* picture, std::int64_t y, std::int64_t x) {
  T total = 0;
  for (std::int64_t i = w.first(y); i < w.last(y, w.height); ++i)
    for (std::int64_t j = w.first(x); j < w.last(x, w.width); ++j) total += picture[i * w.width + j];
  return total;
}

template <class T>
void spread(const Window& w, T value, T* picture, std::int64_t y, std::int64_t x) {
  for (std::int64_t i = w.first(y); i < w.last(y, w.height); ++i)
    for (std::int64_t j = w.first(x); j < w.last(x, w.width); ++j) picture[i * w.width + j] += value;
}

template <class T>
Kernel<T> backward(const Form& form, const Window& w, bool maximum, std::int64_t in, std::int64_t out) {
  form.expect(maximum ? std::vector{out, in} : std::vector{out}, {in});
  const bool accumulate = form.what.accumulate;
  return {.run = [w, maximum, accumulate, in](const Call<T>& call) {
    T* dx = call.out[0];
    if (!accumulate) std::fill_n(dx, in, T(0));
    const T share = T(1) / static_cast<T>(w.kernel * w.kernel);
    for_each_output(w, [&](std::int64_t picture, std::int64_t at, std::int64_t y, std::int64_t x) {
      if (maximum)
        dx[picture + largest(w, call.in[1] + picture, y, x)] += call.in[0][at];
      else
        spread(w, share * call.in[0][at], dx + picture, y, x);
    });
  }};
}

}  // namespace

template <class T>
Kernel<T> make_pool(const Form& form) {
  const std::vector<std::int64_t>&in = form.dims(0, 4), &out = form.dims(1, 4);
  const Window w = pool_window_of(form);
  const std::int64_t in_size = size_of_dims(in), out_size = size_of_dims(out);
  const bool maximum = is<ops::MaxPool>(form.what.op);
  if (form.what.phase == Phase::InputGrad) return backward<T>(form, w, maximum, in_size, out_size);
  if (!form.forward()) form.refuse("this phase", "forward, recompute or input gradient");
  form.expect({in_size}, {out_size});
  return {.run = [w, maximum](const Call<T>& call) {
    const T share = T(1) / static_cast<T>(w.kernel * w.kernel);
    for_each_output(w, [&](std::int64_t picture, std::int64_t at, std::int64_t y, std::int64_t x) {
      const T* from = call.in[0] + picture;
      call.out[0][at] = maximum ? from[largest(w, from, y, x)] : share * sum(w, from, y, x);
    });
  }};
}

template Kernel<float> make_pool(const Form&);
template Kernel<double> make_pool(const Form&);

}  // namespace foreshard::host
