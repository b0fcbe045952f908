#include "exec/arithmetic/host_convert.h"

#include <type_traits>

#include "core/base/error.h"
#include "exec/arithmetic/host_float16.h"

namespace foreshard::host {

namespace {

template <class T, class Stored>
T widen(Stored x) {
  if constexpr (std::is_floating_point_v<Stored>)
    return static_cast<T>(x);
  else
    return static_cast<T>(to_float(x));
}

template <class Stored, class T>
Stored narrow(T x) {
  if constexpr (std::is_same_v<Stored, BFloat16>)
    return to_bfloat16(static_cast<float>(x));
  else if constexpr (std::is_same_v<Stored, Float16>)
    return to_float16(static_cast<float>(x));
  else
    return static_cast<Stored>(x);
}

template <class Stored, class T>
void load_as(const Operand& from, std::int64_t first, std::int64_t count, T* out) {
  const auto* in = reinterpret_cast<const Stored*>(from.data) + first;
#pragma omp simd
  for (std::int64_t i = 0; i < count; ++i) out[i] = widen<T>(in[i]);
}

template <class Stored, class T>
void store_as(const T* in, std::int64_t count, const Operand& to, std::int64_t first) {
  auto* out = reinterpret_cast<Stored*>(to.data) + first;
#pragma omp simd
  for (std::int64_t i = 0; i < count; ++i) out[i] = narrow<Stored>(in[i]);
}

}  // namespace

bool is_floating(DType dtype) { return dtype != DType::I64 && dtype != DType::I32 && dtype != DType::U8; }

template <class T>
bool is_native(DType dtype) {
  return std::is_same_v<T, double> ? dtype == DType::F64 : dtype == DType::F32 || dtype == DType::TF32;
}

template <class T>
void load(const Operand& from, std::int64_t first, std::int64_t count, T* out) {
  switch (from.dtype) {
    case DType::F64: return load_as<double>(from, first, count, out);
    case DType::F32:
    case DType::TF32: return load_as<float>(from, first, count, out);
    case DType::BF16: return load_as<BFloat16>(from, first, count, out);
    case DType::F16: return load_as<Float16>(from, first, count, out);
    case DType::F8:
    case DType::F4:
    case DType::I64:
    case DType::I32:
    case DType::U8: break;
  }
  FS_ASSERT(!"a floating operand");
}

template <class T>
void store(const T* in, std::int64_t count, const Operand& to, std::int64_t first) {
  switch (to.dtype) {
    case DType::F64: return store_as<double>(in, count, to, first);
    case DType::F32:
    case DType::TF32: return store_as<float>(in, count, to, first);
    case DType::BF16: return store_as<BFloat16>(in, count, to, first);
    case DType::F16: return store_as<Float16>(in, count, to, first);
    case DType::F8:
    case DType::F4:
    case DType::I64:
    case DType::I32:
    case DType::U8: break;
  }
  FS_ASSERT(!"a floating operand");
}

template bool is_native<float>(DType);
template bool is_native<double>(DType);
template void load(const Operand&, std::int64_t, std::int64_t, float*);
template void load(const Operand&, std::int64_t, std::int64_t, double*);
template void store(const float*, std::int64_t, const Operand&, std::int64_t);
template void store(const double*, std::int64_t, const Operand&, std::int64_t);

}  // namespace foreshard::host
