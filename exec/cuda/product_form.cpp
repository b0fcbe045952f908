#include "exec/cuda/product_form.h"

namespace foreshard::gpu {

std::uint32_t alignment(const void* data) {
  const auto address = reinterpret_cast<std::uintptr_t>(data);
  std::uint32_t align = 256;
  while (address % align != 0) align /= 2;
  return align;
}

static std::uint32_t alignment_or_none(const void* data) { return data ? alignment(data) : 0; }

ProductForm form_of(const Multiply& w, int device) {
  const auto side = [](const Matrix& matrix) {
    return ProductForm::Side{matrix.row, matrix.step, matrix.transposed, matrix.dtype, alignment(matrix.data), matrix.format};
  };
  return {.device = device,
          .sizes = {w.m, w.n, w.k, w.count},
          .a = side(w.a),
          .b = side(w.b),
          .c = side(w.c),
          .bias_aligned = alignment_or_none(w.bias),
          .adds = w.beta != 0,
          .epilogue = w.epilogue,
          .aux_row = w.aux_row,
          .aux_aligned = alignment_or_none(w.aux),
          .sums = w.sums,
          .sums_aligned = alignment_or_none(w.sums_to)};
}

std::uint32_t ProductForm::end_aligned() const {
  std::uint32_t least = c.aligned;
  for (const std::uint32_t other : {bias_aligned, aux_aligned, sums_aligned})
    if (other != 0) least = std::min(least, other);
  return least;
}

std::string text_of(const ProductForm& form) {
  std::string text;
  const auto put = [&](std::int64_t number) {
    if (!text.empty()) text += ' ';
    text += std::to_string(number);
  };
  for (const std::int64_t size : form.sizes) put(size);
  for (const ProductForm::Side& side : {form.a, form.b, form.c}) {
    text += ' ';
    text += name_of(side.dtype);
    for (const std::int64_t number : {side.row, side.step, std::int64_t{side.transposed}, std::int64_t{side.aligned},
                                      static_cast<std::int64_t>(side.format)})
      put(number);
  }
  for (const std::int64_t number :
       {std::int64_t{form.bias_aligned}, std::int64_t{form.adds}, static_cast<std::int64_t>(form.epilogue), form.aux_row,
        std::int64_t{form.aux_aligned}, static_cast<std::int64_t>(form.sums), std::int64_t{form.sums_aligned}})
    put(number);
  return text;
}

std::vector<ProductRange> ranges_of(const Multiply& w) {
  std::vector<ProductRange> all;
  const auto add = [&](std::byte* data, std::int64_t elements, DType dtype, bool written) {
    if (data) all.push_back({data, data + elements * size_of(dtype).value, written});
  };
  const auto matrix = [&](const Matrix& of, std::int64_t rows, std::int64_t columns, bool written) {
    add(of.data, (w.count - 1) * of.step + (rows - 1) * of.row + columns, of.dtype, written);
  };
  matrix(w.a, w.a.transposed ? w.k : w.m, w.a.transposed ? w.m : w.k, false);
  matrix(w.b, w.b.transposed ? w.n : w.k, w.b.transposed ? w.k : w.n, false);
  matrix(w.c, w.m, w.n, true);
  for (const Matrix& of : {w.a, w.b}) add(const_cast<std::byte*>(of.scale), 1, DType::F32, false);
  add(const_cast<std::byte*>(w.bias), w.n, w.c.dtype, false);
  add(w.aux, (w.m - 1) * w.aux_row + w.n, w.c.dtype, w.epilogue == Epilogue::Gelu);
  add(w.sums_to, w.sums == Sums::OfResult ? w.n : w.m, w.c.dtype, true);
  return all;
}

// The requirements "To use FP8 kernels" in the documentation of cublasLtMatmul.
static std::string wrong_eight_bits(const Multiply& w) {
  if (w.a.dtype != DType::F8 && w.b.dtype != DType::F8) return {};
  if (w.a.dtype != w.b.dtype || !w.a.scale || !w.b.scale) return "a factor in 8 bits beside another format, or without a scale";
  if (w.a.format == Float8::E5M2 && w.b.format == Float8::E5M2) return "two factors in E5M2";
  if (w.a.transposed || !w.b.transposed) return "factors in 8 bits whose rows are not what is summed over";
  for (const std::int64_t size : {w.m, w.n, w.k, w.a.row, w.b.row, w.c.row})
    if (size % 16 != 0) return "8 bits of sizes that are no multiples of 16";
  for (const std::byte* data : {w.a.data, w.b.data, w.c.data})
    if (alignment(data) < 16) return "8 bits that do not begin at a multiple of 16";
  if (w.c.dtype != DType::BF16 && w.c.dtype != DType::F16 && w.c.dtype != DType::F32) return "a product in 8 bits";
  if (w.bias && w.c.dtype == DType::F32) return "8 bits with a bias in fp32";
  if (w.count != 1 || w.epilogue != Epilogue::None || w.sums != Sums::None) return "8 bits with an epilogue, or a batch";
  return {};
}

std::string wrong_form(const Multiply& w) {
  if (std::string wrong = wrong_eight_bits(w); !wrong.empty()) return wrong;
  const auto half = [](DType dtype) { return dtype == DType::BF16 || dtype == DType::F16; };
  const bool slope = w.epilogue == Epilogue::GeluSlope;
  if ((w.epilogue == Epilogue::None) != (w.aux == nullptr)) return "GELU without its saved input, or the other way round";
  if (w.epilogue != Epilogue::None) {
    if (!half(w.c.dtype) || w.a.dtype != w.c.dtype) return "GELU of " + std::string(name_of(w.c.dtype));
    if (w.aux_row % 8 != 0 || w.aux_row < w.n)
      return "rows of the saved input that are " + std::to_string(w.aux_row) + " apart";
    if (alignment(w.aux) < 16) return "a saved input that does not begin at a multiple of 16 bytes";
    if (w.count != 1) return "GELU of a batch";
  }
  if (slope && (w.bias || w.beta != 0)) return "the gradient of GELU and a bias, or something kept";
  if ((w.sums == Sums::None) != (w.sums_to == nullptr)) return "sums without a place, or a place without sums";
  if (w.sums == Sums::OfResult && !slope) return "sums of a result without the gradient of GELU";
  if (w.sums == Sums::OfFactor && (w.epilogue != Epilogue::None || w.bias || w.count != 1 || !half(w.a.dtype)))
    return "sums of a factor beside another epilogue, of a batch or of " + std::string(name_of(w.a.dtype));
  return {};
}

}  // namespace foreshard::gpu
