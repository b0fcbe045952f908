// Number formats of tensors.
#pragma once

#include <cstdint>
#include <string>

#include "core/base/units.h"

namespace foreshard {

enum class DType : std::uint8_t { F64, F32, TF32, BF16, F16, F8, I64, I32, U8 };  // TF32: stored as F32, multiplied as TF32

constexpr Bytes size_of(DType type) {  // of one element
  switch (type) {
    case DType::F64:
    case DType::I64: return {8};
    case DType::F32:
    case DType::TF32:
    case DType::I32: return {4};
    case DType::BF16:
    case DType::F16: return {2};
    case DType::F8:
    case DType::U8: return {1};
  }
  return {0};
}

constexpr const char* name_of(DType type) {
  switch (type) {
    case DType::F64: return "fp64";
    case DType::F32: return "fp32";
    case DType::TF32: return "tf32";
    case DType::BF16: return "bf16";
    case DType::F16: return "fp16";
    case DType::F8: return "fp8";
    case DType::I64: return "int64";
    case DType::I32: return "int32";
    case DType::U8: return "uint8";
  }
  return "?";
}

}  // namespace foreshard
