// What the choice of an algorithm for a product depends on: a kernel that was chosen for one product runs all of the same form.
#pragma once

#include <algorithm>
#include <array>
#include <compare>
#include <cstdint>

#include "exec/cuda/runtime.h"

namespace foreshard::gpu {

// Largest power of two up to 256 that divides the address: how many bytes a kernel may load at once from there.
std::uint32_t alignment(const void* data);

struct ProductForm {
  struct Side {
    std::int64_t row = 0, step = 0;
    bool transposed = false;
    DType dtype = DType::F32;
    std::uint32_t aligned = 0;
    auto operator<=>(const Side&) const = default;
  };
  int device = 0;
  std::array<std::int64_t, 4> sizes = {};  // m, n, k, count
  Side a = {}, b = {}, c = {};
  std::uint32_t bias_aligned = 0;  // 0: there is none
  bool keeps = false;
  auto operator<=>(const ProductForm&) const = default;

  // Of everything that the end of the kernel touches. The library is told nothing of the bias but this.
  std::uint32_t epilogue() const { return bias_aligned == 0 ? c.aligned : std::min(c.aligned, bias_aligned); }
};
ProductForm form_of(const Multiply& product, int device);

}  // namespace foreshard::gpu
