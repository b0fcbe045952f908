#include "strategy/kernels/op_cost.h"

#include <algorithm>
#include <array>
#include <cmath>

#include "strategy/kernels/attention_formula.h"
#include "strategy/kernels/attention_rates.h"
#include "strategy/kernels/kernel_rates.h"
#include "strategy/kernels/machine_constants.h"
#include "strategy/kernels/product_formula.h"

namespace foreshard {

namespace {

constexpr double kConvolution = 0.85;  // implicit GEMM against GEMM: index arithmetic, padding

Seconds memory_time(const Gpu& gpu, Bytes traffic, double efficiency) {
  return {static_cast<double>(traffic.value) / (gpu.memory_bandwidth.value * efficiency)};
}

// The products of a phase of y = x w: y [m, n], x [m, k].
struct PhaseProducts {
  std::array<Gemm, 2> gemms = {};
  int count = 1;
  bool weights = false;  // the last one is a gradient of weights
};
PhaseProducts products_of(const Compute& compute) {
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
    case Phase::Update: return {{forward}, 1};
    case Phase::InputGrad: return {{left, right}, both ? 2 : 1, both};
    case Phase::WeightGrad: return {{right}, 1, true};
    case Phase::Backward: return {{left, right}, 2, true};
  }
  return {};
}

// Time of the products by their formula, and as kernels of this GPU were measured.
struct ProductTimes {
  Seconds formula = {}, measured = {};
};
ProductTimes product_times(const Gpu& gpu, const Compute& compute) {
  const DType type = compute.shapes.front().dtype;
  const PhaseProducts products = products_of(compute);
  ProductTimes times;
  for (int i = 0; i < products.count; ++i) {
    const Gemm& gemm = products.gemms[static_cast<std::size_t>(i)];
    const Seconds time = gemm_time(gpu, gemm, type);
    double ratio = kernel_rates().product_ratio(gpu, gemm, type);
    // The rows of a gradient of weights may be either of its sizes, and no layout but the forward's was measured.
    if (products.weights && i + 1 == products.count)
      ratio = std::sqrt(ratio * kernel_rates().product_ratio(gpu, {gemm.batch, gemm.n, gemm.m, gemm.k}, type));
    times.formula += time;
    times.measured += time * ratio;
  }
  return times;
}

// Products of codes code their operands: the forward its input, for itself and the gradient of the weights, the backward likewise the
// gradient of its output; the weights' copies are kept between micro-batches.
double cast_bytes(const Compute& compute) {
  const Shape& shape = compute.shapes.front();
  if (!is_code(shape.dtype)) return 0;
  const auto rows = static_cast<double>(shape.dims[0] * shape.dims[1]);
  const double each = coding_bytes(shape.dtype);
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

}  // namespace

double coding_bytes(DType code) {
  const double values = 2, coded = coded_size(code);
  if (code == DType::F8) return (values + coded) + (coded + coded);
  constexpr double kScales = 1.0 / 16;
  return values + 2 * (values + coded) + 2 * 2 * kScales;
}

OpTime op_pieces(const Gpu& gpu, const Compute& compute, FlashKernel flash) {
  if (compute.flops.value <= 0 && compute.traffic.value <= 0) return {};
  const MachineConstants& machine = machine_constants(gpu);
  OpTime time = {.overhead = gpu.launch_overhead};
  double efficiency = machine.memory_efficiency;
  double measured = 1;  // of a product or attention, over its formula
  if (compute.flops.value > 0) {
    if (is_matrix_product(compute.op)) {
      const Shape& shape = compute.shapes.front();
      const ProductTimes products = product_times(gpu, compute);
      const double share = alignment_share(gpu, {1, 1, shape.dims[2], shape.dims[3]}, shape.dtype) * sustained_share(gpu);
      time.arithmetic = products.measured * (1.0 / share);
      if (products.formula.value > 0) measured = products.measured.value / products.formula.value;
    } else if (const auto* attention = std::get_if<ops::Attention>(&compute.op)) {
      const AttentionWork work = attention_work(compute, *attention);
      if (is_own_kernel(gpu, flash)) measured = attention_rates().ratio(gpu, work);
      time.arithmetic = attention_time(gpu, work, flash) * measured;
      time.overhead += attention_passes(gpu, work, flash);
    } else if (is<ops::Conv2d>(compute.op))
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
  time.memory = memory_time(gpu, traffic, efficiency) * measured;
  if (is_matrix_product(compute.op)) {
    const double casts =
        machine.memory_efficiency * (compute.shapes.front().dtype == DType::F4 ? machine.codes.fp4_casts : 1.0);
    time.overhead += memory_time(gpu, {static_cast<std::int64_t>(cast_bytes(compute))}, casts);
  }
  return time;
}

Seconds streamed_time(const Gpu& gpu, Bytes traffic) {
  return memory_time(gpu, traffic, machine_constants(gpu).memory_efficiency);
}

double unvectorized_slowdown(const Gpu& gpu, double result_bytes) {
  const double results = kUnvectorizedResults * gpu.sm_count * gpu.clock_ghz * 1e9;
  if (results <= 0) return 1;
  return std::max(1.0, gpu.memory_bandwidth.value * machine_constants(gpu).memory_efficiency / (results * result_bytes));
}

Seconds OpTime::total() const { return overlapped(arithmetic, memory) + overhead; }

Seconds op_time(const Gpu& gpu, const Compute& compute, FlashKernel flash) { return op_pieces(gpu, compute, flash).total(); }

}  // namespace foreshard
