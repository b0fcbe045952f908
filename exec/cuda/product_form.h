// The form of a matrix product: everything that the choice of its algorithm may depend on (sizes, strides, formats, alignment, epilogue).
// An algorithm that was chosen for one product can run all products of the same form.
#pragma once

#include <algorithm>
#include <array>
#include <compare>
#include <cstdint>
#include <string>
#include <vector>

#include "exec/cuda/runtime.h"

namespace foreshard::gpu {

// The alignment of an address in bytes: the largest power of two that divides it, at most 256.
std::uint32_t alignment(const void* data);

// Members as in Multiply (runtime.h), with the alignment of each array in bytes instead of its address; alignment 0: the product has no
// such array.
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
  std::uint32_t bias_aligned = 0;
  bool adds = false;  // Multiply::keep is not 0
  Epilogue epilogue = Epilogue::None;
  std::int64_t aux_row = 0;
  std::uint32_t aux_aligned = 0;
  Sums sums = Sums::None;
  std::uint32_t sums_aligned = 0;
  auto operator<=>(const ProductForm&) const = default;

  // The least alignment of the arrays that the epilogue accesses: c, bias, aux and sums. cuBLASLt takes one alignment for all of them.
  std::uint32_t end_aligned() const;
};
ProductForm form_of(const Multiply& product, int device);
// The form without the device, as text: the key of a ProductFile.
std::string text_of(const ProductForm& form);

// The bytes [begin, end) that a product reads or writes, one range per array.
struct ProductRange {
  std::byte *begin = nullptr, *end = nullptr;
  bool written = false;
};
std::vector<ProductRange> ranges_of(const Multiply& product);

// Which requirement of the cuBLASLt documentation on epilogues and 8-bit factors the product violates, in words; empty: none.
std::string wrong_form(const Multiply& product);

}  // namespace foreshard::gpu
