// A square window that slides over images [n, channels, height, width]: the sizes of convolutions and pools, in elements. Used by exec/host
// and exec/cuda_ops.
#pragma once

#include <algorithm>
#include <cstdint>

#include "exec/host/host_kernel.h"

namespace foreshard::host {

struct Window {
  std::int64_t samples = 1, channels = 0, height = 0, width = 0;  // of the input
  std::int64_t out_height = 0, out_width = 0;
  std::int64_t kernel = 1, stride = 1, padding = 0;

  std::int64_t picture() const { return height * width; }  // elements of one input channel
  std::int64_t out_picture() const { return out_height * out_width; }
  bool fits() const {
    return kernel >= 1 && stride >= 1 && padding >= 0 && (height + 2 * padding - kernel) / stride + 1 == out_height &&
           (width + 2 * padding - kernel) / stride + 1 == out_width;
  }
  // The window at output row (or column) `out` covers the input rows (columns) [first, last). `length`: height (width) of the input;
  // rows of the padding are left out.
  std::int64_t first(std::int64_t out) const { return std::max<std::int64_t>(0, out * stride - padding); }
  std::int64_t last(std::int64_t out, std::int64_t length) const { return std::min(length, out * stride - padding + kernel); }
};

struct Convolution {
  Window window = {};
  std::int64_t filters = 0;

  std::int64_t taps() const { return window.channels * window.kernel * window.kernel; }  // weights of one filter
  std::int64_t in_size() const { return window.channels * window.picture(); }            // elements of one input sample
  std::int64_t out_size() const { return filters * window.out_picture(); }               // elements of one output sample
  // Elements of the im2col matrix [taps, out_picture] of one sample. For a `plain` convolution that matrix is the input itself.
  std::int64_t columns_size() const { return taps() * window.out_picture(); }
  bool plain() const { return window.kernel == 1 && window.stride == 1 && window.padding == 0; }
};

// convolution_of reads the shapes {n, ci, h, w}, {co, kernel, stride, padding}, {n, co, h', w'}; pool_window_of reads {n, c, h, w},
// {n, c, h', w'} and the settings of the operator. Both throw Error for shapes that do not fit each other.
Convolution convolution_of(const Form& form);
Window pool_window_of(const Form& form);

}  // namespace foreshard::host
