// Kernels for images [sample, channel, height, width]: im2col for convolutions, pooling, batch norm, and sums per channel. Each result is
// written by one thread, which sums in a fixed order.
//
// References: exec/host/host_window.cpp, host_conv.cpp, host_pool.cpp, host_batch_norm.cpp. Bytes in bf16, per element of the larger of
// input and output: im2col and pooling read 2 and write 2 (elements that several windows share come from the cache); batch norm reads 6 and
// writes 2 (three passes), its backward reads 12 and writes 2; sums per channel read 2. All are bound by memory.
#pragma once

#include "exec/cuda/kernels/elements.h"
#include "exec/cuda/kernels/norm.h"

namespace foreshard::gpu {

// The input row (or column) under row (or column) `tap` of the window of output row `out`; -1: padding. `length`: rows of the input.
GPU_FUNCTION std::int64_t place_under(const WindowArgs& a, std::int64_t out, std::int64_t tap, std::int64_t length) {
  const std::int64_t at = out * a.stride - a.padding + tap;
  return at >= 0 && at < length ? at : -1;
}
// The output row (or column) whose window has its row `tap` over input row `in`; -1: there is none. `length`: rows of the output.
GPU_FUNCTION std::int64_t window_over(const WindowArgs& a, std::int64_t in, std::int64_t tap, std::int64_t length) {
  const std::int64_t at = in + a.padding - tap;
  return at >= 0 && at % a.stride == 0 && at / a.stride < length ? at / a.stride : -1;
}

struct Pixel {  // of images [plane, height, width]
  std::int64_t plane, y, x;
};
GPU_FUNCTION Pixel pixel_of(std::int64_t i, std::int64_t height, std::int64_t width) {
  return {i / (height * width), i / width % height, i % width};
}

// im2col: the columns of a convolution, [sample, channel, tap, output pixel].
GPU_KERNEL window_columns(const WindowArgs a) {
  const std::int64_t taps = a.kernel * a.kernel, size = a.planes * taps * a.out_height * a.out_width;
  for (std::int64_t first = first_element(); first < size; first += element_stride())
    for (int j = 0; j < up_to_four(size - first); ++j) {
      const Pixel out = pixel_of(first + j, a.out_height, a.out_width);
      const std::int64_t tap = out.plane % taps, plane = out.plane / taps;
      const std::int64_t y = place_under(a, out.y, tap / a.kernel, a.height),
                         x = place_under(a, out.x, tap % a.kernel, a.width);
      store(a.y, first + j, y < 0 || x < 0 ? 0.0f : load(a.x, (plane * a.height + y) * a.width + x));
    }
}

// col2im, the backward of im2col: the gradient of an input pixel is the sum over its occurrences in the columns.
GPU_KERNEL window_pixels(const WindowArgs a) {
  const std::int64_t taps = a.kernel * a.kernel, size = a.planes * a.height * a.width;
  for (std::int64_t first = first_element(); first < size; first += element_stride())
    for (int j = 0; j < up_to_four(size - first); ++j) {
      const Pixel in = pixel_of(first + j, a.height, a.width);
      float sum = old_value(a.accumulate, a.y, first + j);
      for (std::int64_t tap = 0; tap < taps; ++tap) {
        const std::int64_t y = window_over(a, in.y, tap / a.kernel, a.out_height),
                           x = window_over(a, in.x, tap % a.kernel, a.out_width);
        if (y >= 0 && x >= 0) sum += load(a.x, ((in.plane * taps + tap) * a.out_height + y) * a.out_width + x);
      }
      store(a.y, first + j, sum);
    }
}

// Index of the input element that is the (first) maximum in the window of an output pixel.
GPU_FUNCTION std::int64_t largest_under(const WindowArgs& a, const View& x, const Pixel& out) {
  std::int64_t best = -1;
  float most = 0;
  for (std::int64_t tap = 0; tap < a.kernel * a.kernel; ++tap) {
    const std::int64_t y = place_under(a, out.y, tap / a.kernel, a.height), c = place_under(a, out.x, tap % a.kernel, a.width);
    if (y < 0 || c < 0) continue;
    const std::int64_t at = (out.plane * a.height + y) * a.width + c;
    const float value = load(x, at);
    if (best < 0 || value > most) best = at, most = value;
  }
  return best;
}

GPU_FUNCTION float window_mean(const WindowArgs& a, const Pixel& out) {
  float sum = 0;
  for (std::int64_t tap = 0; tap < a.kernel * a.kernel; ++tap) {
    const std::int64_t y = place_under(a, out.y, tap / a.kernel, a.height), x = place_under(a, out.x, tap % a.kernel, a.width);
    if (y >= 0 && x >= 0) sum += load(a.x, (out.plane * a.height + y) * a.width + x);
  }
  return sum / static_cast<float>(a.kernel * a.kernel);  // the padding counts as zeros
}

GPU_KERNEL pool_forward(const WindowArgs a) {
  const std::int64_t size = a.planes * a.out_height * a.out_width;
  for (std::int64_t first = first_element(); first < size; first += element_stride())
    for (int j = 0; j < up_to_four(size - first); ++j) {
      const Pixel out = pixel_of(first + j, a.out_height, a.out_width);
      store(a.y, first + j, a.maximum ? load(a.x, largest_under(a, a.x, out)) : window_mean(a, out));
    }
}

// x is the gradient of the output. Every input pixel sums the gradients of the windows that contain it, in the order of the windows.
GPU_KERNEL pool_backward(const WindowArgs a) {
  const std::int64_t size = a.planes * a.height * a.width;
  for (std::int64_t first = first_element(); first < size; first += element_stride())
    for (int j = 0; j < up_to_four(size - first); ++j) {
      const Pixel in = pixel_of(first + j, a.height, a.width);
      float sum = 0;
      for (std::int64_t tap = a.kernel * a.kernel - 1; tap >= 0; --tap) {  // the last tap belongs to the first window
        const std::int64_t y = window_over(a, in.y, tap / a.kernel, a.out_height),
                           x = window_over(a, in.x, tap % a.kernel, a.out_width);
        if (y < 0 || x < 0) continue;
        const float dy = load(a.x, (in.plane * a.out_height + y) * a.out_width + x);
        if (!a.maximum)
          sum += dy / static_cast<float>(a.kernel * a.kernel);
        else if (largest_under(a, a.picture, {in.plane, y, x}) == first + j)
          sum += dy;
      }
      store(a.y, first + j, old_value(a.accumulate, a.y, first + j) + sum);
    }
}

GPU_KERNEL channel_fill(const ChannelArgs a) {
  const std::int64_t size = a.samples * a.channels * a.pixels;
  for (std::int64_t first = first_element(); first < size; first += element_stride())
    for (int j = 0; j < up_to_four(size - first); ++j) store(a.y, first + j, load(a.bias, (first + j) / a.pixels % a.channels));
}

// ---- a block per channel --------------------------------------------------------------------------------------------------------

// Index of element i among the samples * pixels elements of this block's channel.
GPU_FUNCTION std::int64_t channel_element(const ChannelArgs& a, std::int64_t i) {
  return (i / a.pixels * a.channels + block()) * a.pixels + i % a.pixels;
}

GPU_KERNEL channel_sums(const ChannelArgs a) {
  GPU_SHARED(float, parts, kMostWarps);
  float sum = 0;
  for (std::int64_t i = thread(); i < a.samples * a.pixels; i += threads()) sum += load(a.x, channel_element(a, i));
  sum = block_fold(sum, false, parts);
  if (thread() == 0) store(a.bias_grad, block(), old_value(a.accumulate_weights, a.bias_grad, block()) + sum);
}

GPU_FUNCTION RowStatistics channel_statistics(const ChannelArgs& a, GPU_SHARED_VIEW(float, kMostWarps) parts) {
  const std::int64_t count = a.samples * a.pixels;
  float sum = 0, squares = 0;
  for (std::int64_t i = thread(); i < count; i += threads()) sum += load(a.x, channel_element(a, i));
  const float mean = block_fold(sum, false, parts) / static_cast<float>(count);
  for (std::int64_t i = thread(); i < count; i += threads()) {
    const float apart = load(a.x, channel_element(a, i)) - mean;
    squares += apart * apart;
  }
  return {mean, 1.0f / sqrtf(block_fold(squares, false, parts) / static_cast<float>(count) + a.eps)};
}

GPU_KERNEL batch_norm_forward(const ChannelArgs a) {
  GPU_SHARED(float, parts, kMostWarps);
  const RowStatistics s = channel_statistics(a, parts);
  const float w = load(a.weight, block()) * s.inverse, shift = load(a.bias, block()) - s.mean * w;
  for (std::int64_t i = thread(); i < a.samples * a.pixels; i += threads()) {
    const std::int64_t at = channel_element(a, i);
    store(a.y, at, load(a.x, at) * w + shift);
  }
}

// With u = (x - mean) inverse:  dw = sum(dy u), db = sum(dy), dx = w inverse (dy - db / count - u dw / count).
GPU_KERNEL batch_norm_backward(const ChannelArgs a) {
  GPU_SHARED(float, parts, kMostWarps);
  const RowStatistics s = channel_statistics(a, parts);
  const std::int64_t count = a.samples * a.pixels;
  float sum = 0, projection = 0;
  for (std::int64_t i = thread(); i < count; i += threads()) {
    const std::int64_t at = channel_element(a, i);
    const float dy = load(a.dy, at);
    sum += dy;
    projection += dy * ((load(a.x, at) - s.mean) * s.inverse);
  }
  sum = block_fold(sum, false, parts);
  projection = block_fold(projection, false, parts);
  if (thread() == 0) {
    store(a.weight_grad, block(), old_value(a.accumulate_weights, a.weight_grad, block()) + projection);
    store(a.bias_grad, block(), old_value(a.accumulate_weights, a.bias_grad, block()) + sum);
  }
  if (!a.y.data) return;
  const float w = load(a.weight, block()) * s.inverse, per = 1.0f / static_cast<float>(count);
  for (std::int64_t i = thread(); i < count; i += threads()) {
    const std::int64_t at = channel_element(a, i);
    const float u = (load(a.x, at) - s.mean) * s.inverse;
    store(a.y, at, old_value(a.accumulate, a.y, at) + w * (load(a.dy, at) - sum * per - u * projection * per));
  }
}

}  // namespace foreshard::gpu
