// Linear layers whose factors are rounded to 8 bits, each with a scale that follows from its largest magnitude; on the host
// exec/host/host_matmul.cpp.
//
// If the library multiplies 8-bit numbers, the rounded factors are stored as 8-bit codes. The library needs rows along the summed
// dimension, so some factors are transposed. Otherwise they are stored as the values of the codes in the number format of the operands,
// which represents them exactly. The plan has memory for them (core/op/eight_bit_factors.h). If it has none, or too little because the plan
// was made for GPUs with 8-bit products and this one has none, they are in the scratch memory of the stream.
#include "core/op/eight_bit_factors.h"
#include "exec/cuda_ops/gpu_kernel.h"

namespace foreshard::gpu {

namespace {

constexpr std::int64_t kFewest = 4096;

struct EightBitFactor {
  const Operand* from = nullptr;
  std::int64_t rows = 0, columns = 0;
  bool gradient = false;
};
// A matrix product of a linear layer: op(a) [m, k] times op(b) [k, n]. a and b are the operands as the plan stores them.
struct EightBitProduct {
  EightBitFactor a = {}, b = {};
  bool a_transposed = false, b_transposed = false;  // a is stored as [k, m]; b is stored as [k, n]
  std::int64_t m = 0, n = 0, k = 0;
  std::int64_t first_of_b = 0;  // the first row of the stored b that is used
};

View scales(std::byte* place, int which) {
  return scratch_array(place + EightBitFactors::scales + EightBitFactors::kBorder * which, 2, Type::F32);
}

void find_scale(const Launcher& on, const EightBitFactor& factor, std::byte* place, int which) {
  const std::int64_t count = factor.rows * factor.columns;
  const std::int64_t per_block = round_up(std::max(kFewest, ceil_div(count, EightBitFactors::kMostBlocks)), 1024);
  View x = reads(*factor.from);
  x.elements = count;
  MaxMagnitudeArgs args = {.x = x, .count = count, .per_block = per_block, .gradient = factor.gradient};
  const std::int64_t blocks = ceil_div(count, per_block);
  if (blocks > 1) {
    args.out = scratch_array(place, blocks, Type::F32);
    on.launch(KernelId::max_magnitude, blocks, 1, 256, args);
    args.x = args.out, args.x.writes = false;
    args.count = args.per_block = blocks;
  }
  args.last = true, args.out = scales(place, which);
  on.launch(KernelId::max_magnitude, 1, 1, 256, args);
}

void round_factor(const Launcher& on, const EightBitFactor& factor, std::byte* place, int which, std::byte* to, bool codes,
                  bool transposed) {
  EightBitsArgs args = {
      .x = reads(*factor.from), .scale = scales(place, which), .rows = factor.rows, .columns = factor.columns};
  args.scale.writes = false;
  args.gradient = factor.gradient, args.transposed = transposed;
  const std::int64_t count = factor.rows * factor.columns;
  args.y = scratch_array(to, count, codes ? Type::U8 : args.x.type);
  if (transposed) return on.launch(KernelId::eight_bits, ceil_div(factor.columns, 32), ceil_div(factor.rows, 32), 256, args);
  on.elements(KernelId::eight_bits, count, args);
}

Matrix matrix_of(const EightBitFactor& factor, std::byte* data, bool codes, bool codes_transposed, bool transposed,
                 std::byte* place, int which) {
  const std::int64_t row = codes && codes_transposed ? factor.rows : factor.columns;
  return {.data = data,
          .row = row,
          .transposed = transposed,
          .dtype = codes ? DType::F8 : factor.from->dtype,
          .format = factor.gradient ? Float8::E5M2 : Float8::E4M3,
          .scale = codes ? static_cast<const std::byte*>(scales(place, which).data) + 4 : nullptr};
}

// As codes, a is stored as [m, k] and b as [n, k], whatever the plan's layout; as values, both have the plan's layout.
Multiply product_of(const EightBitProduct& e, std::byte* place, const EightBitFactors& at_place, bool codes, const Operand& c,
                    std::int64_t at, bool keep) {
  Multiply product = {.m = e.m, .n = e.n, .k = e.k};
  const std::int64_t skipped =
      e.first_of_b * (codes && e.b_transposed ? 1 : e.b.columns) * (codes ? 1 : size_of(e.b.from->dtype).value);
  product.a = matrix_of(e.a, place + EightBitFactors::first, codes, e.a_transposed, !codes && e.a_transposed, place, 0);
  product.b = matrix_of(e.b, place + at_place.second + skipped, codes, e.b_transposed, codes || !e.b_transposed, place,
                        1);  // the stored b is op(b)^T
  product.c = {.data = c.data + at * size_of(c.dtype).value, .row = e.n, .dtype = c.dtype};
  product.beta = keep ? 1.0F : 0.0F;
  return product;
}

// All matrix products of a layer in one phase: one per part of y.
std::vector<EightBitProduct> products_of(const host::Form& form, std::span<const Operand> reads,
                                         const std::vector<std::int64_t>& parts) {
  const std::int64_t m = form.dims(0, 4)[1], n = form.dims(0, 4)[2], k = form.dims(0, 4)[3];
  std::vector<EightBitProduct> all;
  std::int64_t at = 0;
  for (std::size_t part = 0; part < parts.size(); at += parts[part++]) {
    const std::int64_t columns = parts[part];
    const EightBitFactor dy = {&reads[part], m, columns, true};
    if (form.forward()) {
      all.push_back({.a = {&reads[0], m, k}, .b = {&reads[1], n, k}, .m = m, .n = columns, .k = k, .first_of_b = at});
    } else if (form.what.phase == Phase::InputGrad) {
      const std::size_t weight = reads.size() == parts.size() + 1 ? parts.size() : parts.size() + 1;
      all.push_back(
          {.a = dy, .b = {&reads[weight], n, k}, .b_transposed = true, .m = m, .n = k, .k = columns, .first_of_b = at});
    } else {
      all.push_back({.a = dy,
                     .b = {&reads[parts.size()], m, k},
                     .a_transposed = true,
                     .b_transposed = true,
                     .m = columns,
                     .n = k,
                     .k = m});
    }
  }
  return all;
}

struct Layer {
  Compute what = {};
  std::vector<std::int64_t> parts = {};  // columns of each part of y
  bool forward = false, weights = false, bias = false, codes = false;
  bool planned = false;  // the plan has memory for the rounded factors

  EightBitFactors layout(std::span<const Operand> reads) const {
    return eight_bit_factors(what.shapes[0], what.phase, parts, codes ? 1 : size_of(reads[0].dtype).value);
  }
  std::byte* place(const Call& call) const { return planned ? call.factors : call.scratch; }
  std::vector<EightBitProduct> products(std::span<const Operand> reads, std::span<const Operand> writes) const {
    return products_of({what, reads, writes}, reads, parts);
  }
  // The product of one part; its columns of y begin at column `at`.
  Multiply product(const std::vector<EightBitProduct>& all, std::size_t part, std::int64_t at, const Call& call) const {
    const bool keep = what.accumulate || (!forward && !weights && part > 0);
    Multiply product = product_of(all[part], place(call), layout(call.reads), codes, call.writes[forward ? part : 0],
                                  weights ? at * all[part].n : 0, keep);
    if (forward && bias) product.bias = call.reads[2].data + at * size_of(call.reads[2].dtype).value;
    return product;
  }
  bool in_codes(const Call& call, Runtime& library) const {
    const std::vector<EightBitProduct> all = products(call.reads, call.writes);
    std::int64_t at = 0;
    for (std::size_t part = 0; part < all.size(); at += parts[part++])
      if (library.algorithms(product(all, part, at, call), kMultiplyWorkspace, 1).empty()) return false;
    return true;
  }
  void run(const Launcher& on, const Call& call) const {
    const std::vector<EightBitProduct> all = products(call.reads, call.writes);
    const EightBitFactors lies = layout(call.reads);
    const Operand* held[2] = {};  // a factor of several products is rounded once
    const auto hold = [&](const EightBitFactor& factor, int which, std::int64_t at, bool transposed) {
      if (held[which] == factor.from) return;
      held[which] = factor.from;
      find_scale(on, factor, place(call), which);
      round_factor(on, factor, place(call), which, place(call) + at, codes, codes && transposed);
    };
    std::int64_t at = 0;
    for (std::size_t part = 0; part < all.size(); at += parts[part++]) {
      const EightBitProduct& e = all[part];
      hold(e.a, 0, EightBitFactors::first, e.a_transposed), hold(e.b, 1, lies.second, e.b_transposed);
      on.multiply(product(all, part, at, call));
      if (!weights || !bias) continue;
      ColumnSumArgs sum = {.x = reads(call.reads[part]), .out = writes(call.writes[1]), .rows = e.k, .columns = e.m};
      sum.out.data = static_cast<std::byte*>(sum.out.data) + at * bytes_of(sum.out.type), sum.out.elements -= at;
      sum.accumulate = what.accumulate;
      on.sum_columns(sum, call.scratch + (planned ? 0 : lies.end));
    }
  }
};

}  // namespace

// The caller has checked the operands.
Kernel make_eight_bit_matmul(const host::Form& form, const std::vector<std::int64_t>& parts, Runtime* libraries) {
  Layer layer{.what = form.what, .parts = parts, .forward = form.forward(), .weights = form.what.phase == Phase::WeightGrad};
  layer.bias = layer.forward ? form.reads.size() == 3 : layer.weights && form.writes.size() == 2;
  auto* scratch = reinterpret_cast<std::byte*>(std::uintptr_t{1} << 20U);  // not accessed: only its alignment matters
  const OpArguments none;
  const Call planned{
      .reads = form.reads, .writes = form.writes, .scratch = scratch, .staged = {}, .table = {}, .arguments = none};
  if (libraries && multiplies_codes(form.what.shapes[0], parts)) {
    layer.codes = true;
    layer.codes = layer.in_codes(planned, *libraries);
  }
  const std::int64_t bytes = layer.layout(form.reads).end;
  layer.planned = form.factors.elements >= bytes;
  const std::vector<std::int64_t>& dims = form.dims(0, 4);
  const std::int64_t sums = layer.weights && layer.bias ? column_sum_scratch(dims[1], dims[2]).value : 0;
  const bool clears = form.as<ops::MatMul>().first_token && form.what.phase == Phase::InputGrad && !form.what.accumulate;
  return {.run =
              [layer, clears](const Launcher& on, const Call& call) {
                if (clears) on.fill(call.writes[0], std::byte{0});
                layer.run(on, call);
              },
          .scratch = {(layer.planned ? 0 : bytes) + sums},
          .multiplies = true};
}

}  // namespace foreshard::gpu
