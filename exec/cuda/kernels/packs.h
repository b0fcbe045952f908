// Packs: memory accesses of 16 bytes per thread, which kernels that are bound by memory should use. A kernel checks once whether all its
// arrays are aligned and have the same type, and then runs the version for that type, which does not test the type of each element.
// Elements of a pack:
//
//   F32          4
//   BF16, F16    8
#pragma once

#include <type_traits>

#include "exec/cuda/kernels/words.h"

namespace foreshard::gpu {

template <Type type>
constexpr int kPack = type == Type::F32 ? 4 : 8;
// Elements of the widest pack. If the arrays have different types, a thread accesses this number of elements of each.
constexpr int kWidest = 8;

// The most elements of an array for kernels that compute indices with 32 bits, because they divide them: the index one grid stride beyond
// the last element must still fit into an int.
constexpr std::int64_t kMostPacked = std::int64_t{1} << 30;

// Whether an array has this type and is aligned for packs. True for an array without data.
GPU_FUNCTION bool packed(const View& a, Type type) { return !a.data || (a.type == type && on_pack_border(a)); }

// Calls body<type>(...) for a type that is known at run time: F32, BF16 or F16.
#define RUN_BODY(type, body, ...)                         \
  ((type) == Type::F32    ? body<Type::F32>(__VA_ARGS__)  \
   : (type) == Type::BF16 ? body<Type::BF16>(__VA_ARGS__) \
                          : body<Type::F16>(__VA_ARGS__))

template <Type type>
GPU_FUNCTION void unpack_word(std::uint32_t word, float* x) {
  if constexpr (type == Type::BF16) {
    x[0] = bits_to_float(word << 16), x[1] = bits_to_float(word & 0xFFFF0000u);
  } else {
    x[0] = from_f16(static_cast<std::uint16_t>(word)), x[1] = from_f16(static_cast<std::uint16_t>(word >> 16));
  }
}
template <Type type>
GPU_FUNCTION std::uint32_t pack_word(float low, float high) {
  return type == Type::BF16 ? pack_bf16(low, high) : pack_f16(low, high);
}

// load_quad, store_quad: the 16 bytes of a pack; unpack: its numbers as fp32. `i` is a multiple of the elements of a pack.
template <Type type, class Index>
GPU_FUNCTION Quad32 load_quad(const View& a, Index i) {
  check_pack(a, i, kPack<type>, false);
  return *reinterpret_cast<const Quad32*>(static_cast<const char*>(a.data) + std::int64_t{i} * (16 / kPack<type>));
}
template <Type type, class Index>
GPU_FUNCTION void store_quad(const View& a, Index i, const Quad32& q) {
  check_pack(a, i, kPack<type>, true);
  *reinterpret_cast<Quad32*>(static_cast<char*>(a.data) + std::int64_t{i} * (16 / kPack<type>)) = q;
}
template <Type type>
GPU_FUNCTION void unpack(const Quad32& q, float* x) {
  if constexpr (type == Type::F32) {
    x[0] = bits_to_float(q.x), x[1] = bits_to_float(q.y), x[2] = bits_to_float(q.z), x[3] = bits_to_float(q.w);
  } else {
    unpack_word<type>(q.x, x), unpack_word<type>(q.y, x + 2), unpack_word<type>(q.z, x + 4), unpack_word<type>(q.w, x + 6);
  }
}

// Load or store n numbers as fp32: one pack, or two packs of F32.
template <Type type, int n = kPack<type>, class Index>
GPU_FUNCTION void load_pack(const View& a, Index i, float* x) {
  GPU_UNROLL
  for (int j = 0; j < n; j += kPack<type>) unpack<type>(load_quad<type>(a, i + j), x + j);
}
template <Type type, int n = kPack<type>, class Index>
GPU_FUNCTION void store_pack(const View& a, Index i, const float* x) {
  GPU_UNROLL
  for (int j = 0; j < n; j += kPack<type>, x += kPack<type>) {
    if constexpr (type == Type::F32) {
      store_quad<type>(a, i + j, {float_to_bits(x[0]), float_to_bits(x[1]), float_to_bits(x[2]), float_to_bits(x[3])});
    } else {
      store_quad<type>(
          a, i + j,
          {pack_word<type>(x[0], x[1]), pack_word<type>(x[2], x[3]), pack_word<type>(x[4], x[5]), pack_word<type>(x[6], x[7])});
    }
  }
}

// Load or store n numbers: a pack, or with n = 1 one number of any type.
template <Type type, int n>
GPU_FUNCTION void load_columns(const View& a, std::int64_t i, float* x) {
  if constexpr (n == 1)
    x[0] = load(a, i);
  else
    load_pack<type>(a, i, x);
}
template <Type type, int n>
GPU_FUNCTION void store_columns(const View& a, std::int64_t i, const float* x) {
  if constexpr (n == 1)
    store(a, i, x[0]);
  else
    store_pack<type>(a, i, x);
}

// Load or store n flags of one byte each in a single access.
template <int n>
GPU_FUNCTION void load_flags(const View& a, std::int64_t i, bool* x) {
  check(a, i, n, false);
  using Bytes = std::conditional_t<n == 8, std::uint64_t, std::uint32_t>;
  const Bytes all = *reinterpret_cast<const Bytes*>(static_cast<const char*>(a.data) + i);
  GPU_UNROLL
  for (int j = 0; j < n; ++j) x[j] = (all >> (8 * j) & 0xFFu) != 0;
}
template <int n>
GPU_FUNCTION void store_flags(const View& a, std::int64_t i, const bool* x) {
  check(a, i, n, true);
  using Bytes = std::conditional_t<n == 8, std::uint64_t, std::uint32_t>;
  Bytes all = 0;
  GPU_UNROLL
  for (int j = 0; j < n; ++j) all |= static_cast<Bytes>(x[j] ? 1 : 0) << (8 * j);
  *reinterpret_cast<Bytes*>(static_cast<char*>(a.data) + i) = all;
}

// Grid-stride loop over an array with packs of n elements: this thread's first pack begins at first_pack, the next pack_stride further.
template <int n, class Index = int>
GPU_FUNCTION Index first_pack() {
  return n * (static_cast<Index>(block()) * threads() + thread());
}
template <int n, class Index = int>
GPU_FUNCTION Index pack_stride() {
  return n * static_cast<Index>(blocks()) * threads();
}

}  // namespace foreshard::gpu
