// Rotary position embedding (Su et al. 2021): of the `rotated` elements of a head, i and i + rotated / 2 are rotated as a pair. sign = -1
// rotates back. Reference: exec/host/host_rope.cpp.
#pragma once

#include "exec/cuda/kernels/packs.h"

namespace foreshard::gpu {

// Index within the row of the i-th element that is not rotated: those of the heads come first, then what follows the heads.
template <class Index>
GPU_FUNCTION Index unrotated(const RopeArgs& a, Index i) {
  const Index dim = static_cast<Index>(a.dim), first = static_cast<Index>(a.first), rotated = static_cast<Index>(a.rotated);
  const Index rest = dim - rotated, of_heads = rest * static_cast<Index>(a.heads);
  if (i >= of_heads) return i + static_cast<Index>(a.heads) * rotated;
  const Index head = i / rest, at = i - head * rest;
  return head * dim + (at < first ? at : at + rotated);
}

// A thread block per row. Reads 2 bytes and writes 2 per element in bf16; the row of the table (4 bytes per element of a head) is in the
// cache after the first head. Bound by memory.
template <Type type>
GPU_FUNCTION void rotate_packs(const RopeArgs& a) {
  constexpr int n = kPack<type>;
  const int dim = static_cast<int>(a.dim), rotated = static_cast<int>(a.rotated), half = rotated / 2, packs = half / n;
  const int row = static_cast<int>(block()), width = static_cast<int>(a.width), at = row * width;
  const int pairs = static_cast<int>(a.heads) * packs, begin = at + static_cast<int>(a.first);
  const int angles = static_cast<int>(a.positions.at(row / static_cast<int>(a.samples))) * rotated;
  for (int p = thread(); p < pairs; p += threads()) {
    const int head = p / packs, i = (p - head * packs) * n, first = begin + head * dim + i, second = first + half;
    float x[n], y[n], c[n], s[n], old[n], old_second[n];
    load_pack<type>(a.x, first, x), load_pack<type>(a.x, second, y);
    load_pack<Type::F32, n>(a.table, angles + i, c), load_pack<Type::F32, n>(a.table, angles + half + i, s);
    GPU_UNROLL
    for (int j = 0; j < n; ++j) old[j] = 0, old_second[j] = 0;
    if (a.accumulate) load_pack<type>(a.y, first, old), load_pack<type>(a.y, second, old_second);
    GPU_UNROLL
    for (int j = 0; j < n; ++j) {
      const float sine = a.sign * s[j];
      old[j] += x[j] * c[j] - y[j] * sine;
      old_second[j] += y[j] * c[j] + x[j] * sine;
    }
    store_pack<type>(a.y, first, old), store_pack<type>(a.y, second, old_second);
  }
  for (int copied = n * thread(); copied < width - static_cast<int>(a.heads) * rotated; copied += n * threads()) {
    const int i = at + unrotated(a, copied);
    if (!a.accumulate) {
      store_quad<type>(a.y, i, load_quad<type>(a.x, i));
      continue;
    }
    float x[n], old[n];
    load_pack<type>(a.x, i, x), load_pack<type>(a.y, i, old);
    GPU_UNROLL
    for (int j = 0; j < n; ++j) old[j] += x[j];
    store_pack<type>(a.y, i, old);
  }
}
GPU_FUNCTION bool rotate_by_packs(const RopeArgs& a) {
  const Type type = a.x.type;
  if (!has_packs(type)) return false;
  const int n = pack_of(type);
  if (a.rotated % (2 * n) != 0 || a.dim % n != 0 || a.first % n != 0 || a.width % n != 0) return false;
  if (a.rows * a.width > kMostPacked || !packed(a.x, type) || !packed(a.y, type) || !on_pack_border(a.table)) return false;
  RUN_BODY(type, rotate_packs, a);
  return true;
}

GPU_KERNEL rotate(const RopeArgs a) {
  if (rotate_by_packs(a)) return;
  const std::int64_t half = a.rotated / 2, pairs = a.heads * half, row = block(), at = row * a.width;
  for (std::int64_t p = thread(); p < pairs; p += threads()) {
    const std::int64_t i = p % half, first = at + p / half * a.dim + a.first + i, second = first + half;
    const std::int64_t angle = a.positions.at(row / a.samples) * a.rotated + i;
    const float c = load(a.table, angle), s = a.sign * load(a.table, angle + half);
    const float x = load(a.x, first), y = load(a.x, second);
    store(a.y, first, old_value(a.accumulate, a.y, first) + (x * c - y * s));
    store(a.y, second, old_value(a.accumulate, a.y, second) + (y * c + x * s));
  }
  for (std::int64_t copied = thread(); copied < a.width - a.heads * a.rotated; copied += threads()) {
    const std::int64_t i = at + unrotated(a, copied);
    store(a.y, i, old_value(a.accumulate, a.y, i) + load(a.x, i));
  }
}

}  // namespace foreshard::gpu
