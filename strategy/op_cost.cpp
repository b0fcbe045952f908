#include "strategy/op_cost.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>

#include "strategy/machine_constants.h"

namespace foreshard {

namespace {

// Output tiles of the library's kernels. Narrow tiles reuse less of what they load from shared memory, which costs a
// part of the rate: a tile of a x b does a b / (a + b) multiply-adds per loaded element.
struct Tile {
  std::int64_t rows = 0, columns = 0;
  double rate = 1;
};
constexpr std::array<Tile, 6> kTiles = {
    {{256, 128, 1.0}, {128, 256, 1.0}, {128, 128, 0.94}, {128, 64, 0.80}, {64, 128, 0.80}, {64, 64, 0.65}}};
constexpr std::array<std::int64_t, 4> kSplits = {1, 2, 4, 8};  // of k, when there are fewer tiles than SMs
constexpr std::int64_t kLeastDepth = 256;                      // of k per split
constexpr double kConvolution = 0.85;                          // implicit GEMM against GEMM: index arithmetic, padding
constexpr double kFlashTile = 128, kFlashFill = 192;           // queries of a block; keys that filling it costs

double ceiling(const MachineConstants& machine, const Gpu& gpu, DType type) {
  switch (type) {
    case DType::F8: return machine.fp8_ceiling;
    case DType::BF16:
    case DType::F16:
    case DType::TF32: return machine.tensor_ceiling;
    case DType::F32: return machine.vector_ceiling;
    case DType::F64:
      return gpu.fp64.value > gpu.vector_fp32.value / 2.0 ? machine.tensor_ceiling : machine.vector_ceiling;
    case DType::I64:
    case DType::I32:
    case DType::U8: return machine.tensor_ceiling;
  }
  return machine.tensor_ceiling;
}

Seconds memory_time(const Gpu& gpu, Bytes traffic, double efficiency) {
  return {static_cast<double>(traffic.value) / (gpu.memory_bandwidth.value * efficiency)};
}

bool has(const std::string& attributes, const char* word) { return attributes.find(word) != std::string::npos; }

// The products of a phase of y = x w: y [m, n], x [m, k].
Seconds matmul_time(const Gpu& gpu, const Compute& compute) {
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
      return both ? gemm_time(gpu, left, shape.dtype) + gemm_time(gpu, right, shape.dtype)
                  : gemm_time(gpu, left, shape.dtype);
    case Phase::WeightGrad: return gemm_time(gpu, right, shape.dtype);
    case Phase::Backward: return gemm_time(gpu, left, shape.dtype) + gemm_time(gpu, right, shape.dtype);
  }
  return {};
}

// Flash attention. Its blocks of queries are spread over the SMs; causal blocks stop at the diagonal.
Seconds attention_time(const Gpu& gpu, const MachineConstants& machine, const Compute& compute) {
  const Shape& query = compute.shapes[0];
  const Shape& key = compute.shapes[1];
  const auto queries = static_cast<double>(query.dims[1]), keys = static_cast<double>(key.dims[1]);
  const auto dim = static_cast<double>(query.dims[3]);
  const bool backward = compute.phase == Phase::InputGrad || compute.phase == Phase::Backward;
  double flops = compute.flops.value;
  if (backward) flops *= 10.0 / 8.0;  // the scores are computed again: five products, not four
  if (has(compute.attributes, "causal")) flops *= 0.5 * (1.0 + std::min(1.0, kFlashTile / keys));
  // Below 128 the products are as deep as the head is wide, while the exponentials per score stay.
  const double width = dim / (dim + 32.0) * (160.0 / 128.0);
  const double depth = keys / (keys + kFlashFill);
  const double blocks = static_cast<double>(query.dims[0] * query.dims[2]) * std::ceil(queries / kFlashTile);
  const double sms = gpu.sm_count;
  const double waves = blocks < sms ? blocks / sms : blocks / sms / std::ceil(blocks / sms);
  const double full = std::max(waves, blocks < sms ? 0.0 : 0.8);  // blocks of different length fill the last wave
  const double rate = (backward ? machine.flash_backward : machine.flash_forward) * std::min(1.0, width) * depth * full;
  return Flops{flops} / FlopsPerSecond{peak(gpu, query.dtype).value * rate};
}

// Implicit GEMM. shapes: {N, Ci, Hi, Wi}, {Co, kernel, stride, padding}, {N, Co, Ho, Wo}.
Seconds convolution_time(const Gpu& gpu, const Compute& compute) {
  const auto& in = compute.shapes[0].dims;
  const auto& filter = compute.shapes[1].dims;
  const auto& out = compute.shapes[2].dims;
  const std::int64_t area = filter[1] * filter[1], pixels = out[0] * out[2] * out[3];
  Gemm gemm = {1, pixels, filter[0], in[1] * area};
  if (compute.phase == Phase::InputGrad)
    gemm = {1, in[0] * in[2] * in[3], in[1], filter[0] * area / (filter[2] * filter[2])};
  if (compute.phase == Phase::WeightGrad) gemm = {1, filter[0], in[1] * area, pixels};
  gemm.k = std::max<std::int64_t>(gemm.k, 1);
  return gemm_time(gpu, gemm, compute.shapes[0].dtype) * (1.0 / kConvolution);
}

}  // namespace

Seconds gemm_time(const Gpu& gpu, const Gemm& gemm, DType type) {
  const MachineConstants& machine = machine_constants(gpu.architecture);
  const double sms = gpu.sm_count > 0 ? gpu.sm_count : 1;
  const double sm_rate = peak(gpu, type).value * ceiling(machine, gpu, type) / sms;  // FLOP/s
  double best = std::numeric_limits<double>::infinity();
  for (const Tile& tile : kTiles) {
    const auto tiles = static_cast<double>(gemm.batch * ceil_div(gemm.m, tile.rows) * ceil_div(gemm.n, tile.columns));
    const double depth_time = 2.0 * static_cast<double>(tile.rows * tile.columns) / (sm_rate * tile.rate);
    for (const std::int64_t split : kSplits) {
      if (split > 1 && (tiles >= sms || gemm.k / split < kLeastDepth)) break;
      const double waves = std::ceil(tiles * static_cast<double>(split) / sms);
      double time =
          waves * (static_cast<double>(gemm.k) / static_cast<double>(split) + machine.fill_depth) * depth_time;
      if (split > 1) {  // partial results in fp32: written and read once
        const double partial = 8.0 * static_cast<double>(gemm.batch * gemm.m * gemm.n * split);
        time += partial / (gpu.memory_bandwidth.value * machine.memory_efficiency);
      }
      best = std::min(best, time);
    }
  }
  return {best};
}

OpTime op_pieces(const Gpu& gpu, const Compute& compute) {
  if (compute.flops.value <= 0 && compute.traffic.value <= 0) return {};
  const MachineConstants& machine = machine_constants(gpu.architecture);
  OpTime time = {.overhead = gpu.launch_overhead};
  double efficiency = machine.memory_efficiency;
  if (compute.flops.value > 0) {
    switch (compute.op) {
      case Op::MatMul: time.arithmetic = matmul_time(gpu, compute); break;
      case Op::Attention: time.arithmetic = attention_time(gpu, machine, compute); break;
      case Op::Conv2d: time.arithmetic = convolution_time(gpu, compute); break;
      case Op::Embedding:
      case Op::Softmax:
      case Op::Norm:
      case Op::Activation:
      case Op::Bias:
      case Op::Dropout:
      case Op::Add:
      case Op::Rope:
      case Op::CrossEntropy:
      case Op::SumOfSquares:
      case Op::BatchNorm:
      case Op::MaxPool:
      case Op::AvgPool:
      case Op::Adam:
      case Op::Sgd:
      case Op::GradNorm:
      case Op::ClipScale:
      case Op::Cast:
      case Op::Zero:
      case Op::Encode:
      case Op::Decode: time.arithmetic = compute.flops / (gpu.vector_fp32 * machine.vector_ceiling); break;
    }
  }
  if (compute.op == Op::Embedding) efficiency = machine.gather_efficiency;
  time.memory = memory_time(gpu, compute.traffic, efficiency);
  return time;
}

Seconds op_time(const Gpu& gpu, const Compute& compute) { return op_pieces(gpu, compute).total(); }

}  // namespace foreshard
