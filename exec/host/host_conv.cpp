// Convolution as a matrix product per sample: columns [channels * kernel^2, output pixels] (Chellapilla et al. 2006).
#include <algorithm>

#include "exec/arithmetic/host_blas.h"
#include "exec/host/host_kernel.h"
#include "exec/host/host_window.h"

namespace foreshard::host {

namespace {

// Calls body(column element, input element or -1 in the padding) for every element of the columns of one sample.
template <class F>
void for_each_column(const Window& w, F&& body) {
  std::int64_t element = 0;
  for (std::int64_t c = 0; c < w.channels; ++c)
    for (std::int64_t ky = 0; ky < w.kernel; ++ky)
      for (std::int64_t kx = 0; kx < w.kernel; ++kx)
        for (std::int64_t y = 0; y < w.out_height; ++y) {
          const std::int64_t in_y = y * w.stride - w.padding + ky;
          const bool inside = in_y >= 0 && in_y < w.height;
          for (std::int64_t x = 0; x < w.out_width; ++x, ++element) {
            const std::int64_t in_x = x * w.stride - w.padding + kx;
            body(element, inside && in_x >= 0 && in_x < w.width ? (c * w.height + in_y) * w.width + in_x : -1);
          }
        }
}

template <class T>
const T* columns_of(const Convolution& conv, const T* x, T* scratch) {
  if (conv.plain()) return x;
  for_each_column(conv.window, [&](std::int64_t element, std::int64_t from) { scratch[element] = from < 0 ? T(0) : x[from]; });
  return scratch;
}

template <class T>
Kernel<T> forward(const Form& form, const Convolution& conv) {
  const std::int64_t samples = conv.window.samples;
  const bool bias = form.reads.size() == 3;
  std::vector<std::int64_t> reads = {samples * conv.in_size(), conv.filters * conv.taps()};
  if (bias) reads.push_back(conv.filters);
  form.expect(reads, {samples * conv.out_size()});
  return {.run =
              [conv, samples, bias](const Call<T>& call) {
                const std::int64_t pixels = conv.window.out_picture();
                for (std::int64_t n = 0; n < samples; ++n) {
                  T* y = call.out[0] + n * conv.out_size();
                  if (bias)
                    for (std::int64_t f = 0; f < conv.filters; ++f) std::fill_n(y + f * pixels, pixels, call.in[2][f]);
                  multiply({.m = conv.filters,
                            .n = pixels,
                            .k = conv.taps(),
                            .a = call.in[1],
                            .lda = conv.taps(),
                            .b = columns_of(conv, call.in[0] + n * conv.in_size(), call.scratch),
                            .ldb = pixels,
                            .c = y,
                            .ldc = pixels,
                            .beta = T(bias ? 1 : 0)});
                }
              },
          .scratch = conv.plain() ? 0 : conv.columns_size()};
}

template <class T>
Kernel<T> input_grad(const Form& form, const Convolution& conv) {
  const std::int64_t samples = conv.window.samples;
  std::vector<std::int64_t> reads = {samples * conv.out_size(), 0, conv.filters * conv.taps()};
  if (form.reads.size() == 4) reads.push_back(conv.filters);
  form.expect(reads, {samples * conv.in_size()});
  const bool accumulate = form.what.accumulate;
  return {.run =
              [conv, samples, accumulate](const Call<T>& call) {
                const std::int64_t pixels = conv.window.out_picture();
                for (std::int64_t n = 0; n < samples; ++n) {
                  T* dx = call.out[0] + n * conv.in_size();
                  const bool direct = conv.plain();
                  if (!accumulate) std::fill_n(dx, conv.in_size(), T(0));
                  multiply({.m = conv.taps(),
                            .n = pixels,
                            .k = conv.filters,
                            .a = call.in[2],
                            .lda = conv.taps(),
                            .transpose_a = true,
                            .b = call.in[0] + n * conv.out_size(),
                            .ldb = pixels,
                            .c = direct ? dx : call.scratch,
                            .ldc = pixels,
                            .beta = T(direct ? 1 : 0)});
                  if (direct) continue;
                  for_each_column(conv.window, [&](std::int64_t element, std::int64_t to) {
                    if (to >= 0) dx[to] += call.scratch[element];
                  });
                }
              },
          .scratch = conv.plain() ? 0 : conv.columns_size()};
}

template <class T>
Kernel<T> weight_grad(const Form& form, const Convolution& conv) {
  const std::int64_t samples = conv.window.samples;
  const bool bias = form.writes.size() == 2, accumulate = form.what.accumulate;
  std::vector<std::int64_t> writes = {conv.filters * conv.taps()};
  if (bias) writes.push_back(conv.filters);
  form.expect({samples * conv.out_size(), samples * conv.in_size()}, writes);
  return {.run =
              [conv, samples, bias, accumulate](const Call<T>& call) {
                const std::int64_t pixels = conv.window.out_picture();
                if (bias && !accumulate) std::fill_n(call.out[1], conv.filters, T(0));
                for (std::int64_t n = 0; n < samples; ++n) {
                  const T* dy = call.in[0] + n * conv.out_size();
                  multiply({.m = conv.filters,
                            .n = conv.taps(),
                            .k = pixels,
                            .a = dy,
                            .lda = pixels,
                            .b = columns_of(conv, call.in[1] + n * conv.in_size(), call.scratch),
                            .ldb = pixels,
                            .transpose_b = true,
                            .c = call.out[0],
                            .ldc = conv.taps(),
                            .beta = T(accumulate || n > 0 ? 1 : 0)});
                  for (std::int64_t f = 0; bias && f < conv.filters; ++f)
                    for (std::int64_t p = 0; p < pixels; ++p) call.out[1][f] += dy[f * pixels + p];
                }
              },
          .scratch = conv.plain() ? 0 : conv.columns_size()};
}

}  // namespace

template <class T>
Kernel<T> make_conv2d(const Form& form) {
  const Convolution conv = convolution_of(form);
  if (form.forward()) return forward<T>(form, conv);
  if (form.what.phase == Phase::InputGrad) return input_grad<T>(form, conv);
  if (form.what.phase == Phase::WeightGrad) return weight_grad<T>(form, conv);
  form.refuse("this phase", "forward, recompute, input gradient or weight gradient");
}

template Kernel<float> make_conv2d(const Form&);
template Kernel<double> make_conv2d(const Form&);

}  // namespace foreshard::host
