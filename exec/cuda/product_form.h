// What the choice of an algorithm for a product depends on: a kernel that was chosen for one product runs all of the same form.
#pragma once

#include <algorithm>
#include <array>
#include <compare>
#include <cstdint>
#include <string>
#include <vector>

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
    Float8 format = Float8::E4M3;
    auto operator<=>(const Side&) const = default;
  };
  int device = 0;
  std::array<std::int64_t, 4> sizes = {};  // m, n, k, count
  Side a = {}, b = {}, c = {};
  std::uint32_t bias_aligned = 0;  // 0: there is none; so for the next two
  bool keeps = false;
  Epilogue epilogue = Epilogue::None;
  std::int64_t aux_row = 0;
  std::uint32_t aux_aligned = 0;
  Sums sums = Sums::None;
  std::uint32_t sums_aligned = 0;
  auto operator<=>(const ProductForm&) const = default;

  // Of everything that the end of the kernel touches. The library is told nothing of the bias but this.
  std::uint32_t end_aligned() const;
};
ProductForm form_of(const Multiply& product, int device);
// The same for the same form on any GPU: what a file of choices knows it by.
std::string text_of(const ProductForm& form);

// First and last byte but one of what a product reads or writes.
struct ProductRange {
  std::byte *begin = nullptr, *end = nullptr;
  bool written = false;
};
std::vector<ProductRange> ranges_of(const Multiply& product);

// What cuBLASLt's documents demand of epilogues and of factors in 8 bits; empty: nothing is wrong.
std::string wrong_form(const Multiply& product);

}  // namespace foreshard::gpu
