// Number formats of tensors.
#pragma once

#include <cstdint>
#include <string>

#include "core/base/units.h"

namespace foreshard {

// TF32: stored as F32, multiplied as TF32. F4: NVIDIA's NVFP4, E2M1 with a scale in E4M3 for each 16 numbers.
enum class DType : std::uint8_t { F64, F32, TF32, BF16, F16, F8, F4, I64, I32, U8 };

constexpr Bytes size_of(DType type) {  // of one element; F4 rounded up: coded_size
  switch (type) {
    case DType::F64:
    case DType::I64: return {8};
    case DType::F32:
    case DType::TF32:
    case DType::I32: return {4};
    case DType::BF16:
    case DType::F16: return {2};
    case DType::F8:
    case DType::F4:
    case DType::U8: return {1};
  }
  return {0};
}

// Bytes of an element in a long tensor, with its share of the scales.
constexpr double coded_size(DType type) {
  return type == DType::F4 ? 0.5 + 1.0 / 16 : static_cast<double>(size_of(type).value);
}

// Formats in which factors of products are coded, while the values themselves are stored in 16 bits (docs/decisions/eight-bits.md).
constexpr bool is_code(DType type) { return type == DType::F8 || type == DType::F4; }

constexpr const char* name_of(DType type) {
  switch (type) {
    case DType::F64: return "fp64";
    case DType::F32: return "fp32";
    case DType::TF32: return "tf32";
    case DType::BF16: return "bf16";
    case DType::F16: return "fp16";
    case DType::F8: return "fp8";
    case DType::F4: return "nvfp4";
    case DType::I64: return "int64";
    case DType::I32: return "int32";
    case DType::U8: return "uint8";
  }
  return "?";
}

}  // namespace foreshard
