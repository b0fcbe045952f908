#include "strategy/kernels/product_formula.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <numeric>

#include "strategy/kernels/fitted_constants.h"
#include "strategy/kernels/machine_constants.h"

namespace foreshard {

namespace {

// Output tiles of the library's kernels. Per unit of k a tile of r x c moves r + c elements through shared memory for r c
// multiply-adds, so small tiles starve an SM whose tensor cores are fast for its 128 bytes per clock.
struct Tile {
  std::int64_t rows = 0, columns = 0;
};
constexpr std::array<Tile, 10> kTiles = {
    {{256, 128}, {128, 256}, {192, 128}, {128, 192}, {128, 128}, {256, 64}, {64, 256}, {128, 64}, {64, 128}, {64, 64}}};
constexpr double kBestTile = 1.0 / 256 + 1.0 / 128;  // elements per multiply-add of the widest tile
constexpr double kSharedMemory = 16;  // 16-bit FLOPs per byte that an A100 SM reads from shared memory: 2048 / 128 per clock
constexpr std::array<double, 6> kSplits = {1, 2, 3, 4, 6, 8};  // numbers of parts that k may be split into, if tiles are few
constexpr double kLeastDepth = 256;                            // of k per split
constexpr double kUsualClock = 1.5;                            // GHz
constexpr double kTail = 0.7;      // of the idle part of the last wave; the rest comes back as clock under the power limit
constexpr double kCacheSpeed = 3;  // L2 against device memory, bandwidth

double ceiling(const MachineConstants& machine, const Gpu& gpu, DType type) {
  switch (type) {
    case DType::F8: return tensor_ceiling(gpu) * machine.fp8_share;
    case DType::F4: return fp4_ceiling(gpu);
    case DType::BF16:
    case DType::F16:
    case DType::TF32: return tensor_ceiling(gpu);
    case DType::F32: return machine.vector_ceiling;
    case DType::F64: return gpu.fp64.value > gpu.vector_fp32.value / 2.0 ? tensor_ceiling(gpu) : machine.vector_ceiling;
    case DType::I64:
    case DType::I32:
    case DType::U8: return tensor_ceiling(gpu);
  }
  return tensor_ceiling(gpu);
}

// Bytes that the tensor cores of an SM need per clock, relative to an A100 (2048 16-bit FLOPs per clock).
double tensor_feed(const Gpu& gpu, DType type) {
  const double clock = (gpu.clock_ghz > 0 ? gpu.clock_ghz : kUsualClock) * 1e9;
  const double sms = gpu.sm_count > 0 ? gpu.sm_count : 1;
  return peak(gpu, type).value / sms / clock * coded_size(type) / 4096.0;
}

double waves(double tiles_per_sm) {
  if (tiles_per_sm <= 1.0) return 1.0;
  const auto whole = static_cast<double>(static_cast<std::int64_t>(tiles_per_sm));
  const double last = tiles_per_sm - whole;
  return last > 0 ? tiles_per_sm + kTail * (1.0 - last) : whole;
}

}  // namespace

Seconds gemm_time(const Gpu& gpu, const Gemm& gemm, DType type) {
  const MachineConstants& machine = machine_constants(gpu);
  const double sms = gpu.sm_count > 0 ? gpu.sm_count : 1;
  const double sm_rate = peak(gpu, type).value * ceiling(machine, gpu, type) / sms;  // FLOP/s
  const double feed = tensor_feed(gpu, type);
  const auto k = static_cast<double>(gemm.k);
  const double work = static_cast<double>(gemm.batch) * static_cast<double>(gemm.m) * static_cast<double>(gemm.n);
  const double partial_time = 8.0 * work / (gpu.memory_bandwidth.value * machine.memory_efficiency);
  double best = std::numeric_limits<double>::infinity();
  for (const Tile& tile : kTiles) {
    const double elements = 1.0 / static_cast<double>(tile.rows) + 1.0 / static_cast<double>(tile.columns);
    const double flop_time = 2.0 * (1.0 + kSharedMemory * feed * (elements - kBestTile)) / sm_rate;
    if (work * k * flop_time >= best * sms) continue;  // even without losses of shape
    const auto tiles = static_cast<double>(gemm.batch * ceil_div(gemm.m, tile.rows) * ceil_div(gemm.n, tile.columns));
    const double depth_time = flop_time * static_cast<double>(tile.rows * tile.columns);
    for (const double split : kSplits) {
      if (split > 1 && (tiles >= sms || k < kLeastDepth * split)) break;
      double time = waves(tiles * split / sms) * (k / split + machine.fill_depth) * depth_time;
      if (split > 1) {  // partial results in fp32, written and read once, in the cache when they fit
        const bool cached = 4.0 * work * split < static_cast<double>(gpu.l2_cache.value);
        time += partial_time * split / (cached ? kCacheSpeed : 1.0);
      }
      best = std::min(best, time);
    }
  }
  return {best};
}

// Rows that are no multiple of 16 bytes cannot be loaded as vectors. Multiples of 4 bytes are copied asynchronously in smaller pieces,
// others by older kernels through registers. That costs clocks of the SM, which weigh more if its tensor cores are faster.
double alignment_share(const Gpu& gpu, const Gemm& gemm, DType type) {
  const std::int64_t size = std::max<std::int64_t>(1, size_of(type).value);
  const std::int64_t rows = std::gcd(gemm.n * size, gemm.k * size);
  if (rows % 16 == 0) return 1;
  const MachineConstants& machine = machine_constants(gpu);
  const double clocks = rows % 4 == 0 ? machine.narrow_rows : machine.odd_rows;
  return 1.0 / (1.0 + clocks * tensor_feed(gpu, type));
}

Seconds product_formula(const Gpu& gpu, const Gemm& gemm, DType type) {
  const double out = 2, in = std::min(coded_size(type), 4.0);
  const auto batch = static_cast<double>(gemm.batch), m = static_cast<double>(gemm.m), n = static_cast<double>(gemm.n),
             k = static_cast<double>(gemm.k);
  const double bytes = batch * (in * (m + n) * k + std::max(in, out) * m * n);
  const double arithmetic = gemm_time(gpu, gemm, type).value;
  const double memory = bytes / (gpu.memory_bandwidth.value * machine_constants(gpu).memory_efficiency);
  return overlapped({arithmetic}, {memory});
}

Seconds overlapped(Seconds arithmetic, Seconds memory) {
  const double sum = arithmetic.value + memory.value;
  if (sum <= 0) return {};
  const double shorter = std::min(arithmetic.value, memory.value);
  return max(arithmetic, memory) + Seconds{shorter * product_constants().exposed * arithmetic.value / sum};
}

}  // namespace foreshard
