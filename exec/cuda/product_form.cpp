#include "exec/cuda/product_form.h"

namespace foreshard::gpu {

std::uint32_t alignment(const void* data) {
  const auto address = reinterpret_cast<std::uintptr_t>(data);
  std::uint32_t align = 256;
  while (address % align != 0) align /= 2;
  return align;
}

ProductForm form_of(const Multiply& w, int device) {
  const auto side = [](const Matrix& matrix) {
    return ProductForm::Side{matrix.row, matrix.step, matrix.transposed, matrix.dtype, alignment(matrix.data)};
  };
  return {.device = device,
          .sizes = {w.m, w.n, w.k, w.count},
          .a = side(w.a),
          .b = side(w.b),
          .c = side(w.c),
          .bias_aligned = w.bias ? alignment(w.bias) : 0,
          .keeps = w.keep != 0};
}

}  // namespace foreshard::gpu
