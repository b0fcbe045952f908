#include "exec/arithmetic/host_reduce.h"

#include <algorithm>
#include <array>

#include "exec/arithmetic/host_float16.h"

namespace foreshard {

namespace {

constexpr std::int64_t kBlock = 2048;

template <class Stored>
struct Number {
  using Sum = Stored;
  static Sum load(Stored x) { return x; }
  static Stored store(Sum x) { return x; }
};
template <>
struct Number<BFloat16> {
  using Sum = float;
  static float load(BFloat16 x) { return to_float(x); }
  static BFloat16 store(float x) { return to_bfloat16(x); }
};
template <>
struct Number<Float16> {
  using Sum = float;
  static float load(Float16 x) { return to_float(x); }
  static Float16 store(float x) { return to_float16(x); }
};

template <class Stored>
void reduce_as(Combine how, bool accumulate, std::span<const std::byte* const> sources, std::span<std::byte* const> to,
               std::int64_t first, std::int64_t count, std::int64_t parts) {
  using N = Number<Stored>;
  using Sum = typename N::Sum;
  std::array<Sum, kBlock> sums;
  for (std::int64_t at = first; at < first + count; at += kBlock) {
    const std::int64_t n = std::min(kBlock, first + count - at);
    const auto* front = reinterpret_cast<const Stored*>(sources[0]) + at;
    for (std::int64_t i = 0; i < n; ++i) sums[static_cast<std::size_t>(i)] = N::load(front[i]);
    for (const std::byte* source : sources.subspan(1)) {
      const auto* in = reinterpret_cast<const Stored*>(source) + at;
      if (how == Combine::Max)
        for (std::int64_t i = 0; i < n; ++i)
          sums[static_cast<std::size_t>(i)] = std::max(sums[static_cast<std::size_t>(i)], N::load(in[i]));
      else
        for (std::int64_t i = 0; i < n; ++i) sums[static_cast<std::size_t>(i)] += N::load(in[i]);
    }
    if (how == Combine::Mean)
      for (std::int64_t i = 0; i < n; ++i) sums[static_cast<std::size_t>(i)] /= static_cast<Sum>(parts);
    for (std::byte* target : to) {
      auto* out = reinterpret_cast<Stored*>(target) + at;
      for (std::int64_t i = 0; i < n; ++i) {
        const Sum sum = sums[static_cast<std::size_t>(i)];
        out[i] = N::store(accumulate ? N::load(out[i]) + sum : sum);
      }
    }
  }
}

}  // namespace

bool can_reduce(DType dtype) {
  switch (dtype) {
    case DType::F64:
    case DType::F32:
    case DType::TF32:
    case DType::BF16:
    case DType::F16: return true;
    case DType::F8:
    case DType::F4:
    case DType::I64:
    case DType::I32:
    case DType::U8: return false;
  }
  return false;
}

bool reduce(DType dtype, Combine how, bool accumulate, std::span<const std::byte* const> sources,
            std::span<std::byte* const> to, std::int64_t first, std::int64_t count, std::int64_t parts) {
  if (parts == 0) parts = std::ssize(sources);
  switch (dtype) {
    case DType::F64: reduce_as<double>(how, accumulate, sources, to, first, count, parts); return true;
    case DType::F32:
    case DType::TF32: reduce_as<float>(how, accumulate, sources, to, first, count, parts); return true;
    case DType::BF16: reduce_as<BFloat16>(how, accumulate, sources, to, first, count, parts); return true;
    case DType::F16: reduce_as<Float16>(how, accumulate, sources, to, first, count, parts); return true;
    case DType::F8:
    case DType::F4:
    case DType::I64:
    case DType::I32:
    case DType::U8: return false;
  }
  return false;
}

}  // namespace foreshard
