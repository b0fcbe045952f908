// Arrays of one type, 16 bytes at a time: what a kernel that is bound by memory should do. A kernel looks once whether all its arrays allow it and
// which type they have, and runs the body of that type; no element is asked for its type, and indices have 32 bits.
//
//   F32          4 numbers a pack
//   BF16, F16    8
#pragma once

#include "exec/cuda/kernels/words.h"

namespace foreshard::gpu {

template <Type type>
constexpr int kPack = type == Type::F32 ? 4 : 8;

// Grids go from pack to pack; one stride further than the last element must still be an int.
constexpr std::int64_t kMostPacked = std::int64_t{1} << 30;

// Arrays that are not there allow everything.
GPU_FUNCTION bool packed(const View& a, Type type) {
  return !a.data || (a.type == type && (reinterpret_cast<std::uintptr_t>(a.data) & 15u) == 0);
}
GPU_FUNCTION int pack_of(Type type) { return type == Type::F32 ? 4 : 8; }
GPU_FUNCTION bool has_packs(Type type) { return type == Type::F32 || type == Type::BF16 || type == Type::F16; }

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

// `i` is a multiple of the pack.
template <Type type>
GPU_FUNCTION void load_pack(const View& a, int i, float* x) {
  check(a, i, kPack<type>, false);
  const Quad32 q = static_cast<const Quad32*>(a.data)[i / kPack<type>];
  if constexpr (type == Type::F32) {
    x[0] = bits_to_float(q.x), x[1] = bits_to_float(q.y), x[2] = bits_to_float(q.z), x[3] = bits_to_float(q.w);
  } else {
    unpack_word<type>(q.x, x), unpack_word<type>(q.y, x + 2), unpack_word<type>(q.z, x + 4), unpack_word<type>(q.w, x + 6);
  }
}
template <Type type>
GPU_FUNCTION void store_pack(const View& a, int i, const float* x) {
  check(a, i, kPack<type>, true);
  Quad32 q;
  if constexpr (type == Type::F32) {
    q = {float_to_bits(x[0]), float_to_bits(x[1]), float_to_bits(x[2]), float_to_bits(x[3])};
  } else {
    q = {pack_word<type>(x[0], x[1]), pack_word<type>(x[2], x[3]), pack_word<type>(x[4], x[5]), pack_word<type>(x[6], x[7])};
  }
  static_cast<Quad32*>(a.data)[i / kPack<type>] = q;
}

template <Type type>
GPU_FUNCTION int first_pack() {
  return kPack<type> * (static_cast<int>(block()) * threads() + thread());
}
template <Type type>
GPU_FUNCTION int pack_stride() {
  return kPack<type> * static_cast<int>(blocks()) * threads();
}

}  // namespace foreshard::gpu
