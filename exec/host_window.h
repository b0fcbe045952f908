// A square window sliding over pictures [n, channels, height, width]: convolutions and pools. Used only by exec/host_*.cpp and exec/cuda/.
#pragma once

#include <algorithm>
#include <cstdint>

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

}  // namespace foreshard::host
