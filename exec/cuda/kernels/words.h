// The functions and macros with which the kernels are written: index of a thread, barriers, loading and storing of numbers, reductions,
// random numbers. Each is defined twice, for nvcc and for the emulator; the rest of a kernel file does not depend on which of the two
// compiles it.
#pragma once

#include <cmath>
#include <cstdint>

#include "exec/cuda/kernel_args.h"

#ifdef FORESHARD_EMULATED
#include <bit>

#include "exec/cuda/emulator/emulator.h"
#define GPU_KERNEL inline void
#define GPU_FUNCTION inline
#define GPU_MEMBER
#define GPU_SHARED(type, name, count) static foreshard::emulator::Shared<type, count> name(#name)
#define GPU_SHARED_VIEW(type, count) foreshard::emulator::Shared<type, count>&
#define GPU_BARRIER() foreshard::emulator::barrier(__FILE__, __LINE__)
#define GPU_UNROLL
#else
#define GPU_KERNEL static __global__ void
#define GPU_FUNCTION static __device__ __forceinline__
#define GPU_MEMBER __device__ __forceinline__
#define GPU_SHARED(type, name, count) __shared__ type name[count]
#define GPU_SHARED_VIEW(type, count) type*
#define GPU_BARRIER() __syncthreads()
#define GPU_UNROLL _Pragma("unroll")
#endif

namespace foreshard::gpu {

constexpr int kWarp = 32;
constexpr int kThreads = 256;   // threads of a block, unless a kernel says otherwise
constexpr int kMostWarps = 32;  // most warps of a block

#ifdef FORESHARD_EMULATED
GPU_FUNCTION int thread() { return emulator::self().thread; }
GPU_FUNCTION int threads() { return emulator::self().threads; }
GPU_FUNCTION std::int64_t block() { return emulator::self().block_x; }
GPU_FUNCTION std::int64_t block_y() { return emulator::self().block_y; }
GPU_FUNCTION std::int64_t blocks() { return emulator::self().blocks_x; }
GPU_FUNCTION float bits_to_float(std::uint32_t bits) { return std::bit_cast<float>(bits); }
GPU_FUNCTION std::uint32_t float_to_bits(float x) { return std::bit_cast<std::uint32_t>(x); }
GPU_FUNCTION float lane_xor(float x, int mask) { return bits_to_float(emulator::exchange_xor(float_to_bits(x), mask)); }
GPU_FUNCTION float lane_value(float x, int from) { return bits_to_float(emulator::exchange_from(float_to_bits(x), from)); }
GPU_FUNCTION void check(const View& a, std::int64_t i, std::int64_t count, bool write) {
  emulator::check_array(a, i, count, write);
}
GPU_FUNCTION void check_pack(const View& a, std::int64_t i, std::int64_t count, bool write) {
  emulator::check_pack(a, i, count, write);
}
GPU_FUNCTION void multiply_fragments(float* d, const std::uint32_t* a, const std::uint32_t* b) {
  emulator::multiply_fragments(d, a, b);
}
#else
GPU_FUNCTION int thread() { return static_cast<int>(threadIdx.x); }
GPU_FUNCTION int threads() { return static_cast<int>(blockDim.x); }
GPU_FUNCTION std::int64_t block() { return blockIdx.x; }
GPU_FUNCTION std::int64_t block_y() { return blockIdx.y; }
GPU_FUNCTION std::int64_t blocks() { return gridDim.x; }
GPU_FUNCTION float bits_to_float(std::uint32_t bits) { return __uint_as_float(bits); }
GPU_FUNCTION std::uint32_t float_to_bits(float x) { return __float_as_uint(x); }
GPU_FUNCTION float lane_xor(float x, int mask) { return __shfl_xor_sync(0xFFFFFFFFu, x, mask); }
GPU_FUNCTION float lane_value(float x, int from) { return __shfl_sync(0xFFFFFFFFu, x, from); }
GPU_FUNCTION void check(const View&, std::int64_t, std::int64_t, bool) {}
GPU_FUNCTION void check_pack(const View&, std::int64_t, std::int64_t, bool) {}
GPU_FUNCTION void multiply_fragments(float* d, const std::uint32_t* a, const std::uint32_t* b) {
  asm volatile("mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32 {%0,%1,%2,%3}, {%4,%5,%6,%7}, {%8,%9}, {%0,%1,%2,%3};"
               : "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3])
               : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b[0]), "r"(b[1]));
}
#endif

// Atomically adds one to an entry of shared memory.
#ifdef FORESHARD_EMULATED
template <int n>
GPU_FUNCTION void count_one(emulator::Shared<std::uint32_t, n>& counts, std::int64_t i) {
  counts.count_one(i);
}
#else
GPU_FUNCTION void count_one(std::uint32_t* counts, std::int64_t i) { atomicAdd(counts + i, 1u); }
#endif

GPU_FUNCTION int lane() { return thread() % kWarp; }
GPU_FUNCTION int warp() { return thread() / kWarp; }
GPU_FUNCTION int warps() { return threads() / kWarp; }

// Approximate instructions of the GPU, for kernels that would otherwise be bound by arithmetic instead of memory. Errors in units of the
// last place: e^x 2 + |1.173 x| (CUDA C++ Programming Guide, "Intrinsic Functions"), 1/x one (PTX ISA, "rcp").
#ifdef FORESHARD_EMULATED
GPU_FUNCTION float quick_exp(float x) { return expf(x); }
GPU_FUNCTION float quick_reciprocal(float x) { return 1.0f / x; }
#else
GPU_FUNCTION float quick_exp(float x) {
  float y;
  asm("ex2.approx.ftz.f32 %0, %1;" : "=f"(y) : "f"(x * 1.4426950408889634f));
  return y;
}
GPU_FUNCTION float quick_reciprocal(float x) {
  float y;
  asm("rcp.approx.ftz.f32 %0, %1;" : "=f"(y) : "f"(x));
  return y;
}
#endif

// Grid-stride loops over an array: one element at a time (flat_thread, flat_threads), or four (first_element, element_stride).
GPU_FUNCTION std::int64_t flat_thread() { return block() * threads() + thread(); }
GPU_FUNCTION std::int64_t flat_threads() { return blocks() * threads(); }
GPU_FUNCTION std::int64_t first_element() { return 4 * flat_thread(); }
GPU_FUNCTION std::int64_t element_stride() { return 4 * flat_threads(); }

// ---- numbers in memory: 16-bit ones are rounded to nearest even, NaN stays NaN ----------------------------------------------
GPU_FUNCTION float from_bf16(std::uint16_t bits) { return bits_to_float(static_cast<std::uint32_t>(bits) << 16); }
#ifdef FORESHARD_EMULATED
GPU_FUNCTION std::uint16_t to_bf16(float x) {
  const std::uint32_t bits = float_to_bits(x), rounded = (bits + 0x7FFFu + ((bits >> 16) & 1u)) >> 16;
  return static_cast<std::uint16_t>((bits & 0x7FFFFFFFu) > 0x7F800000u ? (bits >> 16) | 0x40u : rounded);
}
GPU_FUNCTION std::uint32_t pack_bf16(float low, float high) {
  return to_bf16(low) | static_cast<std::uint32_t>(to_bf16(high)) << 16;
}
// As in exec/arithmetic/host_float16.h: the exponent is shifted; one floating-point operation normalises or rounds subnormals.
GPU_FUNCTION float from_f16(std::uint16_t x) {
  const std::uint32_t sign = static_cast<std::uint32_t>(x & 0x8000u) << 16, magnitude = x & 0x7FFFu;
  const float scaled = bits_to_float(magnitude << 13) * 0x1p112f;
  return bits_to_float((magnitude >= 0x7C00u ? (magnitude << 13) | 0x7F800000u : float_to_bits(scaled)) | sign);
}
GPU_FUNCTION std::uint16_t to_f16(float x) {
  const std::uint32_t bits = float_to_bits(x), sign = (bits >> 16) & 0x8000u, magnitude = bits & 0x7FFFFFFFu;
  const std::uint32_t normal = (magnitude - (112u << 23) + 0xFFFu + ((magnitude >> 13) & 1u)) >> 13;
  const std::uint32_t subnormal = float_to_bits(bits_to_float(magnitude) + 0.5f) - 0x3F000000u;
  std::uint32_t half = magnitude < 0x38800000u ? subnormal : normal;
  if (magnitude >= 0x477FF000u) half = 0x7C00u;
  if (magnitude > 0x7F800000u) half = 0x7E00u;
  return static_cast<std::uint16_t>(half | sign);
}
GPU_FUNCTION std::uint32_t pack_f16(float low, float high) {
  return to_f16(low) | static_cast<std::uint32_t>(to_f16(high)) << 16;
}
#else  // the GPU's conversions, with the same rounding and the same subnormals (PTX ISA, "cvt")
GPU_FUNCTION std::uint32_t pack_bf16(float low, float high) {
  std::uint32_t both;
  asm("cvt.rn.bf16x2.f32 %0, %1, %2;" : "=r"(both) : "f"(high), "f"(low));
  return both;
}
GPU_FUNCTION std::uint16_t to_bf16(float x) {
  std::uint16_t bits;
  asm("cvt.rn.bf16.f32 %0, %1;" : "=h"(bits) : "f"(x));
  return bits;
}
GPU_FUNCTION float from_f16(std::uint16_t bits) {
  float x;
  asm("cvt.f32.f16 %0, %1;" : "=f"(x) : "h"(bits));
  return x;
}
GPU_FUNCTION std::uint16_t to_f16(float x) {
  std::uint16_t bits;
  asm("cvt.rn.f16.f32 %0, %1;" : "=h"(bits) : "f"(x));
  return bits;
}
GPU_FUNCTION std::uint32_t pack_f16(float low, float high) {
  std::uint32_t both;
  asm("cvt.rn.f16x2.f32 %0, %1, %2;" : "=r"(both) : "f"(high), "f"(low));
  return both;
}
#endif

GPU_FUNCTION float load(const View& a, std::int64_t i) {
  check(a, i, 1, false);
  switch (a.type) {
    case Type::F32: return static_cast<const float*>(a.data)[i];
    case Type::BF16: return from_bf16(static_cast<const std::uint16_t*>(a.data)[i]);
    case Type::F16: return from_f16(static_cast<const std::uint16_t*>(a.data)[i]);
    case Type::F64: return static_cast<float>(static_cast<const double*>(a.data)[i]);
    case Type::I64: return static_cast<float>(static_cast<const std::int64_t*>(a.data)[i]);
    case Type::U8: return static_cast<float>(static_cast<const std::uint8_t*>(a.data)[i]);
  }
  return 0;
}
GPU_FUNCTION void store(const View& a, std::int64_t i, float x) {
  check(a, i, 1, true);
  switch (a.type) {
    case Type::F32: static_cast<float*>(a.data)[i] = x; return;
    case Type::BF16: static_cast<std::uint16_t*>(a.data)[i] = to_bf16(x); return;
    case Type::F16: static_cast<std::uint16_t*>(a.data)[i] = to_f16(x); return;
    case Type::F64: static_cast<double*>(a.data)[i] = x; return;
    case Type::I64: static_cast<std::int64_t*>(a.data)[i] = static_cast<std::int64_t>(x); return;
    case Type::U8: static_cast<std::uint8_t*>(a.data)[i] = static_cast<std::uint8_t>(x); return;
  }
}
GPU_FUNCTION std::int64_t load_integer(const View& a, std::int64_t i) {
  check(a, i, 1, false);
  return static_cast<const std::int64_t*>(a.data)[i];
}
GPU_FUNCTION void store_integer(const View& a, std::int64_t i, std::int64_t x) {
  check(a, i, 1, true);
  static_cast<std::int64_t*>(a.data)[i] = x;
}
GPU_FUNCTION bool load_flag(const View& a, std::int64_t i) {
  check(a, i, 1, false);
  return static_cast<const std::uint8_t*>(a.data)[i] != 0;
}
GPU_FUNCTION double load_double(const View& a, std::int64_t i) {
  if (a.type != Type::F64) return load(a, i);
  check(a, i, 1, false);
  return static_cast<const double*>(a.data)[i];
}
GPU_FUNCTION void store_double(const View& a, std::int64_t i, double x) {
  if (a.type != Type::F64) return store(a, i, static_cast<float>(x));
  check(a, i, 1, true);
  static_cast<double*>(a.data)[i] = x;
}

struct alignas(16) Quad32 {
  std::uint32_t x, y, z, w;
};

// Loads or stores `count` (at most four) consecutive elements; in a single access if there are four and they are aligned.
GPU_FUNCTION void load4(const View& a, std::int64_t i, int count, float* out) {
  const bool wide = count == 4 && (reinterpret_cast<std::uintptr_t>(a.data) & 15u) == 0 && (i & 3) == 0;
  if (wide && a.type == Type::F32) {
    check(a, i, 4, false);
    const Quad32 q = *reinterpret_cast<const Quad32*>(static_cast<const float*>(a.data) + i);
    out[0] = bits_to_float(q.x), out[1] = bits_to_float(q.y), out[2] = bits_to_float(q.z), out[3] = bits_to_float(q.w);
  } else if (wide && a.type == Type::BF16) {
    check(a, i, 4, false);
    const std::uint64_t q = *reinterpret_cast<const std::uint64_t*>(static_cast<const std::uint16_t*>(a.data) + i);
    for (int j = 0; j < 4; ++j) out[j] = from_bf16(static_cast<std::uint16_t>(q >> (16 * j)));
  } else {
    for (int j = 0; j < 4; ++j) out[j] = j < count ? load(a, i + j) : 0.0f;
  }
}
GPU_FUNCTION void store4(const View& a, std::int64_t i, int count, const float* x) {
  const bool wide = count == 4 && (reinterpret_cast<std::uintptr_t>(a.data) & 15u) == 0 && (i & 3) == 0;
  if (wide && a.type == Type::F32) {
    check(a, i, 4, true);
    *reinterpret_cast<Quad32*>(static_cast<float*>(a.data) + i) = {float_to_bits(x[0]), float_to_bits(x[1]),
                                                                   float_to_bits(x[2]), float_to_bits(x[3])};
  } else if (wide && a.type == Type::BF16) {
    check(a, i, 4, true);
    *reinterpret_cast<std::uint64_t*>(static_cast<std::uint16_t*>(a.data) + i) =
        pack_bf16(x[0], x[1]) | static_cast<std::uint64_t>(pack_bf16(x[2], x[3])) << 32;
  } else {
    GPU_UNROLL
    for (int j = 0; j < 4; ++j)
      if (j < count) store(a, i + j, x[j]);
  }
}

// Eight consecutive bf16 numbers as four words; `i` is even.
GPU_FUNCTION Quad32 load_words(const View& a, std::int64_t i) {
  check(a, i, 8, false);
  const std::uint16_t* at = static_cast<const std::uint16_t*>(a.data) + i;
  if ((reinterpret_cast<std::uintptr_t>(at) & 15u) == 0) return *reinterpret_cast<const Quad32*>(at);
  const std::uint32_t* words = reinterpret_cast<const std::uint32_t*>(at);
  return {words[0], words[1], words[2], words[3]};
}
GPU_FUNCTION std::uint32_t load_word(const View& a, std::int64_t i) {
  check(a, i, 2, false);
  return *reinterpret_cast<const std::uint32_t*>(static_cast<const std::uint16_t*>(a.data) + i);
}
GPU_FUNCTION void store_word(const View& a, std::int64_t i, std::uint32_t word) {
  check(a, i, 2, true);
  *reinterpret_cast<std::uint32_t*>(static_cast<std::uint16_t*>(a.data) + i) = word;
}

GPU_FUNCTION int up_to_four(std::int64_t left) { return left < 4 ? static_cast<int>(left) : 4; }

// ---- sums ---------------------------------------------------------------------------------------------------------------------
GPU_FUNCTION float warp_sum(float x) {
  for (int mask = kWarp / 2; mask > 0; mask /= 2) x += lane_xor(x, mask);
  return x;
}
GPU_FUNCTION float warp_maximum(float x) {
  for (int mask = kWarp / 2; mask > 0; mask /= 2) x = fmaxf(x, lane_xor(x, mask));
  return x;
}

// Sum or maximum over the thread block, with the same bits in every thread. `parts`: shared memory with an entry per warp.
GPU_FUNCTION float block_fold(float x, bool maximum, GPU_SHARED_VIEW(float, kMostWarps) parts) {
  x = maximum ? warp_maximum(x) : warp_sum(x);
  GPU_BARRIER();  // the entries of an earlier sum have been read
  if (lane() == 0) parts[warp()] = x;
  GPU_BARRIER();
  float total = parts[0];
  for (int w = 1; w < warps(); ++w) {
    const float part = parts[w];
    total = maximum ? fmaxf(total, part) : total + part;
  }
  return total;
}

GPU_FUNCTION float old_value(bool accumulate, const View& a, std::int64_t i) { return accumulate ? load(a, i) : 0.0f; }
GPU_FUNCTION float sigmoid(float x) { return quick_reciprocal(1.0f + quick_exp(-x)); }

// ---- random words: exec/base/philox.h ------------------------------------------------------------------------------------------------
struct RandomWords {
  std::uint32_t word[4];
};
GPU_FUNCTION RandomWords random_words(std::uint64_t seed, std::uint64_t stream, std::uint64_t index) {
  RandomWords c = {{static_cast<std::uint32_t>(index), static_cast<std::uint32_t>(index >> 32),
                    static_cast<std::uint32_t>(stream), static_cast<std::uint32_t>(stream >> 32)}};
  std::uint32_t k0 = static_cast<std::uint32_t>(seed), k1 = static_cast<std::uint32_t>(seed >> 32);
  for (int round = 0; round < 10; ++round) {
    const std::uint64_t a = static_cast<std::uint64_t>(0xD2511F53u) * c.word[0],
                        b = static_cast<std::uint64_t>(0xCD9E8D57u) * c.word[2];
    c = {{static_cast<std::uint32_t>(b >> 32) ^ c.word[1] ^ k0, static_cast<std::uint32_t>(b),
          static_cast<std::uint32_t>(a >> 32) ^ c.word[3] ^ k1, static_cast<std::uint32_t>(a)}};
    k0 += 0x9E3779B9u, k1 += 0xBB67AE85u;
  }
  return c;
}
GPU_FUNCTION std::uint64_t scrambled(std::uint64_t h) {
  h = (h ^ (h >> 33)) * 0xFF51AFD7ED558CCDu;
  h = (h ^ (h >> 33)) * 0xC4CEB9FE1A85EC53u;
  return h ^ (h >> 33);
}
GPU_FUNCTION std::uint64_t stream_of_sample(std::uint64_t key, std::int64_t sample) {
  return scrambled(scrambled(key + 0x9E3779B97F4A7C15u) + static_cast<std::uint64_t>(sample));
}
// Whether dropout keeps element `index` of a sample: its random word is at least `threshold`.
GPU_FUNCTION bool keeps(std::uint64_t seed, std::uint64_t stream, std::int64_t index, std::uint32_t threshold) {
  const RandomWords words = random_words(seed, stream, static_cast<std::uint64_t>(index) / 4);
  const std::uint32_t low = (index & 1) != 0 ? words.word[1] : words.word[0],
                      high = (index & 1) != 0 ? words.word[3] : words.word[2];
  return ((index & 2) != 0 ? high : low) >= threshold;
}

}  // namespace foreshard::gpu
