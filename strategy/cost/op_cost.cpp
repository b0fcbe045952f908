#include "strategy/cost/op_cost.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <numeric>

#include "strategy/cost/fitted_constants.h"
#include "strategy/cost/machine_constants.h"

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
constexpr double kTail = 0.7;          // of the idle part of the last wave; the rest comes back as clock under the power limit
constexpr double kCacheSpeed = 3;      // L2 against device memory, bandwidth
constexpr double kConvolution = 0.85;  // implicit GEMM against GEMM: index arithmetic, padding
constexpr double kFlashTile = 128, kFlashFill = 192;  // queries of a block; keys that filling it costs

double tensor_ceiling(const MachineConstants& machine, const Gpu& gpu) {
  const double teraflops = peak(gpu, DType::F16).value * 1e-12;
  if (gpu.power_watts <= 0 || teraflops <= 0) return std::min(machine.tensor_cap, machine.power_coefficient);
  return std::min(machine.tensor_cap, machine.power_coefficient * std::cbrt(gpu.power_watts / teraflops));
}

double ceiling(const MachineConstants& machine, const Gpu& gpu, DType type) {
  switch (type) {
    case DType::F8: return tensor_ceiling(machine, gpu) * machine.fp8_share;
    case DType::BF16:
    case DType::F16:
    case DType::TF32: return tensor_ceiling(machine, gpu);
    case DType::F32: return machine.vector_ceiling;
    case DType::F64:
      return gpu.fp64.value > gpu.vector_fp32.value / 2.0 ? tensor_ceiling(machine, gpu) : machine.vector_ceiling;
    case DType::I64:
    case DType::I32:
    case DType::U8: return tensor_ceiling(machine, gpu);
  }
  return tensor_ceiling(machine, gpu);
}

Seconds memory_time(const Gpu& gpu, Bytes traffic, double efficiency) {
  return {static_cast<double>(traffic.value) / (gpu.memory_bandwidth.value * efficiency)};
}

// The products of a phase of y = x w: y [m, n], x [m, k].
Seconds products_time(const Gpu& gpu, const Compute& compute) {
  const Shape& shape = compute.shapes.front();
  const Gemm forward = {shape.dims[0], shape.dims[1], shape.dims[2], shape.dims[3]};
  const Gemm left = {forward.batch, forward.m, forward.k, forward.n};   // gradient of x
  const Gemm right = {forward.batch, forward.k, forward.n, forward.m};  // gradient of w
  // A product of two activations (unfused attention) makes both gradients in one phase.
  const double one = 2.0 * static_cast<double>(forward.batch) * static_cast<double>(forward.m) *
                     static_cast<double>(forward.n) * static_cast<double>(forward.k);
  const bool both = compute.flops.value > 1.5 * one;
  switch (compute.phase) {
    case Phase::Forward:
    case Phase::Recompute:
    case Phase::Other:
    case Phase::Update: return gemm_time(gpu, forward, shape.dtype);
    case Phase::InputGrad:
      return both ? gemm_time(gpu, left, shape.dtype) + gemm_time(gpu, right, shape.dtype) : gemm_time(gpu, left, shape.dtype);
    case Phase::WeightGrad: return gemm_time(gpu, right, shape.dtype);
    case Phase::Backward: return gemm_time(gpu, left, shape.dtype) + gemm_time(gpu, right, shape.dtype);
  }
  return {};
}

// Bytes that the tensor cores of an SM need per clock, relative to an A100 (2048 16-bit FLOPs per clock).
double tensor_feed(const Gpu& gpu, DType type) {
  const double clock = (gpu.clock_ghz > 0 ? gpu.clock_ghz : kUsualClock) * 1e9;
  const double sms = gpu.sm_count > 0 ? gpu.sm_count : 1;
  return peak(gpu, type).value / sms / clock * static_cast<double>(size_of(type).value) / 4096.0;
}

// Share of the best rate that the library's kernel reaches. It loses clocks of the SM to index arithmetic, synchronisation and choices that
// are not the best. This loss weighs less if the arithmetic is slow (GeForce: a quarter of an A100's per SM and clock; fp32 without tensor
// cores), and twice if loads do not overlap the arithmetic (V100, whose tensor cores are half as fast).
double library_share(const Gpu& gpu, DType type) {
  const double clocks = machine_constants(gpu).copies_beside ? 1 : 2;
  const double slow = std::min(1.0, clocks * tensor_feed(gpu, type));
  return 1.0 / (1.0 + (1.0 / product_constants().library_choice - 1.0) * slow);
}

// Rows that are no multiple of 16 bytes cannot be loaded as vectors. Multiples of 4 bytes are copied asynchronously in smaller pieces,
// others by older kernels through registers. That costs clocks of the SM, which weigh more if its tensor cores are faster.
double alignment(const Gpu& gpu, const Shape& shape) {
  const std::int64_t size = std::max<std::int64_t>(1, size_of(shape.dtype).value);
  const std::int64_t rows = std::gcd(shape.dims[2] * size, shape.dims[3] * size);
  if (rows % 16 == 0) return 1;
  const MachineConstants& machine = machine_constants(gpu);
  const double clocks = rows % 4 == 0 ? machine.narrow_rows : machine.odd_rows;
  return 1.0 / (1.0 + clocks * tensor_feed(gpu, shape.dtype));
}

Seconds matmul_time(const Gpu& gpu, const Compute& compute) {
  const Shape& shape = compute.shapes.front();
  const double share = alignment(gpu, shape) * library_share(gpu, shape.dtype) * sustained_share(gpu);
  return products_time(gpu, compute) * (1.0 / share);
}

// 8-bit products cast their operands: the forward reads its input, writes it in 8 bits and transposes that for the gradient of the
// weights, the backward likewise the gradient of its output; the weights' copies are kept between micro-batches.
double cast_bytes(const Compute& compute) {
  const Shape& shape = compute.shapes.front();
  if (shape.dtype != DType::F8) return 0;
  const auto rows = static_cast<double>(shape.dims[0] * shape.dims[1]);
  const double each = (2 + 1) + (1 + 1);
  switch (compute.phase) {
    case Phase::Forward:
    case Phase::Recompute: return each * rows * static_cast<double>(shape.dims[3]);
    case Phase::InputGrad:
    case Phase::Backward: return each * rows * static_cast<double>(shape.dims[2]);
    case Phase::WeightGrad:
    case Phase::Update:
    case Phase::Other: return 0;
  }
  return 0;
}

// Keys that a block of queries works on: the mean over the blocks, in whole tiles, and the most.
struct SeenKeys {
  double mean = 0, most = 0;
};
SeenKeys keys_seen(const ops::Attention& op, double keys) {
  const auto chunk = static_cast<double>(op.chunk), window = static_cast<double>(op.window);
  if (op.chunk > 0 && chunk < keys) return {0.5 * (chunk + std::min(kFlashTile, chunk)), chunk};
  if (op.window > 0 && window < keys) {
    // With a window of w keys the first queries see fewer, so there are s w - w (w - 1) / 2 pairs; a block of queries needs the keys of a
    // window and of its own tile.
    const double causal = 0.5 * (keys + std::min(keys, kFlashTile));
    return {std::min(causal, window - window * (window - 1) / (2 * keys) + kFlashTile), std::min(keys, window + kFlashTile)};
  }
  return {keys, keys};
}

// Flash attention. Its blocks of queries are spread over the SMs; causal blocks stop at the diagonal.
Seconds attention_time(const Gpu& gpu, const MachineConstants& machine, const Compute& compute, const ops::Attention& op,
                       FlashKernel flash) {
  const Shape& query = compute.shapes[0];
  const Shape& key = compute.shapes[1];
  const auto queries = static_cast<double>(query.dims[1]), keys = static_cast<double>(key.dims[1]);
  const auto dim = static_cast<double>(query.dims[3]);
  const bool backward = compute.phase == Phase::InputGrad || compute.phase == Phase::Backward;
  double flops = compute.flops.value;
  if (backward) flops *= 10.0 / 8.0;  // the scores are computed again: five products, not four
  const SeenKeys seen = keys_seen(op, keys);
  if (op.causal && seen.mean == keys) flops *= 0.5 * (1.0 + std::min(1.0, kFlashTile / keys));
  if (seen.mean < keys) flops *= seen.mean / keys;
  // With head sizes below 128 the products per score are shorter, while each score still needs its exponential.
  const double width = dim / (dim + 32.0) * (160.0 / 128.0);
  const double depth = seen.most / (seen.most + kFlashFill);
  const double blocks = static_cast<double>(query.dims[0] * query.dims[2]) * std::ceil(queries / kFlashTile);
  const double sms = gpu.sm_count;
  const double waves = blocks < sms ? blocks / sms : blocks / sms / std::ceil(blocks / sms);
  const double full = std::max(waves, blocks < sms ? 0.0 : 0.8);  // blocks of different length fill the last wave
  const double kernel = (backward ? machine.flash_backward : machine.flash_forward)[static_cast<std::size_t>(flash)];
  const double rate = kernel * std::min(1.0, width) * depth * full;
  return Flops{flops} / FlopsPerSecond{peak(gpu, query.dtype).value * rate};
}

// Implicit GEMM. shapes: {N, Ci, Hi, Wi}, {Co, kernel, stride, padding}, {N, Co, Ho, Wo}.
Seconds convolution_time(const Gpu& gpu, const Compute& compute) {
  const auto& in = compute.shapes[0].dims;
  const auto& filter = compute.shapes[1].dims;
  const auto& out = compute.shapes[2].dims;
  const std::int64_t area = filter[1] * filter[1], pixels = out[0] * out[2] * out[3];
  Gemm gemm = {1, pixels, filter[0], in[1] * area};
  if (compute.phase == Phase::InputGrad) gemm = {1, in[0] * in[2] * in[3], in[1], filter[0] * area / (filter[2] * filter[2])};
  if (compute.phase == Phase::WeightGrad) gemm = {1, filter[0], in[1] * area, pixels};
  gemm.k = std::max<std::int64_t>(gemm.k, 1);
  return gemm_time(gpu, gemm, compute.shapes[0].dtype) * (1.0 / kConvolution);
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

OpTime op_pieces(const Gpu& gpu, const Compute& compute, FlashKernel flash) {
  if (compute.flops.value <= 0 && compute.traffic.value <= 0) return {};
  const MachineConstants& machine = machine_constants(gpu);
  OpTime time = {.overhead = gpu.launch_overhead};
  double efficiency = machine.memory_efficiency;
  if (compute.flops.value > 0) {
    if (is_matrix_product(compute.op))
      time.arithmetic = matmul_time(gpu, compute);
    else if (const auto* attention = std::get_if<ops::Attention>(&compute.op))
      time.arithmetic = attention_time(gpu, machine, compute, *attention, flash);
    else if (is<ops::Conv2d>(compute.op))
      time.arithmetic = convolution_time(gpu, compute);
    else
      time.arithmetic = compute.flops / (gpu.vector_fp32 * machine.vector_ceiling);
  }
  if (is<ops::TokenEmbedding, ops::PositionEmbedding, ops::Sample>(compute.op)) efficiency = machine.gather_efficiency;
  Bytes traffic = compute.traffic;
  if (compute.accumulate && is_matrix_product(compute.op) && !compute.shapes.empty()) {  // reads what it adds to
    const Shape& shape = compute.shapes.front();
    const bool weights = compute.phase == Phase::WeightGrad;
    traffic += shape.dims[0] * shape.dims[3] * shape.dims[weights ? 2 : 1] * size_of(shape.dtype);
  }
  time.memory = memory_time(gpu, traffic, efficiency);
  if (is_matrix_product(compute.op))
    time.overhead += memory_time(gpu, {static_cast<std::int64_t>(cast_bytes(compute))}, machine.memory_efficiency);
  return time;
}

Seconds OpTime::total() const {
  const double sum = arithmetic.value + memory.value;
  if (sum <= 0) return overhead;
  const double shorter = arithmetic < memory ? arithmetic.value : memory.value;
  return max(arithmetic, memory) + Seconds{shorter * product_constants().exposed * arithmetic.value / sum} + overhead;
}

Seconds op_time(const Gpu& gpu, const Compute& compute, FlashKernel flash) { return op_pieces(gpu, compute, flash).total(); }

}  // namespace foreshard
