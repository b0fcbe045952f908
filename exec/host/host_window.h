// A square window sliding over pictures [n, channels, height, width]: convolutions and pools. Used only by exec/host_*.cpp and exec/cuda/.
#pragma once

#include <algorithm>
#include <cstdint>

#include "exec/host/host_kernel.h"

namespace foreshard::host {

struct Window {
  std::int64_t samples = 1, channels = 0, height = 0, width = 0;  // of the input
  std::int64_t out_height = 0, out_width = 0;
  std::int64_t kernel = 1, stride = 1, padding = 0;

  std::int64_t picture() const { return height * width; }
  std::int64_t out_picture() const { return out_height * out_width; }
  bool fits() const {
    return kernel >= 1 && stride >= 1 && padding >= 0 && (height + 2 * padding - kernel) / stride + 1 == out_height &&
           (width + 2 * padding - kernel) / stride + 1 == out_width;
  }
  // Input rows (columns) [first, last) that the window at output row (column) `out` covers inside the picture.
  std::int64_t first(std::int64_t out) const { return std::max<std::int64_t>(0, out * stride - padding); }
  std::int64_t last(std::int64_t out, std::int64_t length) const { return std::min(length, out * stride - padding + kernel); }
};

struct Convolution {
  Window window = {};
  std::int64_t filters = 0;

  std::int64_t taps() const { return window.channels * window.kernel * window.kernel; }
  std::int64_t in_size() const { return window.channels * window.picture(); }  // of a sample
  std::int64_t out_size() const { return filters * window.out_picture(); }
  std::int64_t columns_size() const { return taps() * window.out_picture(); }
  bool plain() const { return window.kernel == 1 && window.stride == 1 && window.padding == 0; }  // columns are the input
};

// From the shapes {n, ci, h, w}, {co, kernel, stride, padding}, {n, co, h', w'}; of a pool from {n, c, h, w}, {n, c, h', w'} and its
// settings. Throw Error for shapes that do not fit.
Convolution convolution_of(const Form& form);
Window pool_window_of(const Form& form);

}  // namespace foreshard::host
