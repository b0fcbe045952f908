// Linear layers whose factors are rounded to 8 bits, each with a scale of its own that follows from its largest number (exec/host/host_matmul.cpp).
//
//   scratch   maxima of blocks | scales of both | both factors
//
// Where the library multiplies 8 bits the factors lie there as codes, their rows along what is summed over: so some are turned. Else they lie there
// as the numbers that the codes stand for, in 16 bits, which hold them exactly.
#include <algorithm>

#include "exec/cuda/gpu_kernel.h"

namespace foreshard::gpu {

namespace {

constexpr std::int64_t kMostBlocks = 512, kFewest = 4096, kScales = 4 * kMostBlocks, kFactors = kScales + 512;
constexpr std::int64_t kSums = 256;  // between what is in scratch

struct Factor {
  const Operand* from = nullptr;
  std::int64_t rows = 0, columns = 0;
  bool gradient = false;
};
// A product of a linear layer: op(a) [m, k], op(b) [k, n]; a, b as they lie in the plan.
struct Eighth {
  Factor a = {}, b = {};
  bool a_turned = false, b_turned = false;  // lie as [k, m]; as [k, n]
  std::int64_t m = 0, n = 0, k = 0;
  std::int64_t first_of_b = 0;  // the first row of b that is used, of b as it lies
};

std::int64_t bytes_of(const Factor& factor) { return round_up(2 * factor.rows * factor.columns, kSums); }

View scales(std::byte* scratch, int which) { return scratch_array(scratch + kScales + 256 * which, 2, Type::F32); }

void find_scale(const Launcher& on, const Factor& factor, std::byte* scratch, int which) {
  const std::int64_t count = factor.rows * factor.columns;
  const std::int64_t per_block = round_up(std::max(kFewest, ceil_div(count, kMostBlocks)), 1024);
  View x = reads(*factor.from);
  x.elements = count;
  LargestArgs args = {.x = x, .count = count, .per_block = per_block, .gradient = factor.gradient};
  const std::int64_t blocks = ceil_div(count, per_block);
  if (blocks > 1) {
    args.out = scratch_array(scratch, blocks, Type::F32);
    on.launch(KernelId::largest_values, blocks, 1, 256, args);
    args.x = args.out, args.x.writes = false;
    args.count = args.per_block = blocks;
  }
  args.last = true, args.out = scales(scratch, which);
  on.launch(KernelId::largest_values, 1, 1, 256, args);
}

void round_factor(const Launcher& on, const Factor& factor, std::byte* scratch, int which, std::byte* to, bool codes,
                  bool turned) {
  EightBitsArgs args = {
      .x = reads(*factor.from), .scale = scales(scratch, which), .rows = factor.rows, .columns = factor.columns};
  args.scale.writes = false;
  args.gradient = factor.gradient, args.turned = turned;
  const std::int64_t count = factor.rows * factor.columns;
  args.y = scratch_array(to, count, codes ? Type::U8 : args.x.type);
  if (turned) return on.launch(KernelId::eight_bits, ceil_div(factor.columns, 32), ceil_div(factor.rows, 32), 256, args);
  on.elements(KernelId::eight_bits, count, args);
}

// Where the second factor lies, whichever product it is of; and what is free behind it.
std::int64_t place_of_b(const std::vector<Eighth>& all) {
  std::int64_t most = 0;
  for (const Eighth& e : all) most = std::max(most, bytes_of(e.a));
  return kFactors + most;
}
std::int64_t behind(const std::vector<Eighth>& all) { return place_of_b(all) + bytes_of(all.front().b); }

Matrix matrix_of(const Factor& factor, std::byte* data, bool codes, bool turned, bool transposed, std::byte* scratch,
                 int which) {
  const std::int64_t row = codes && turned ? factor.rows : factor.columns;
  return {.data = data,
          .row = row,
          .transposed = transposed,
          .dtype = codes ? DType::F8 : factor.from->dtype,
          .format = factor.gradient ? Float8::E5M2 : Float8::E4M3,
          .scale = codes ? static_cast<const std::byte*>(scales(scratch, which).data) + 4 : nullptr};
}

// Codes: a as it lies, b transposed, whatever lay how; numbers: as the plan has them.
Multiply product_of(const Eighth& e, std::byte* scratch, std::int64_t place_of_b, bool codes, const Operand& c, std::int64_t at,
                    bool keep) {
  Multiply product = {.m = e.m, .n = e.n, .k = e.k};
  const bool b_transposed = !e.b_turned;  // rows of b as it lies are those of op(b)^T
  const std::int64_t skipped =
      e.first_of_b * (codes && e.b_turned ? 1 : e.b.columns) * (codes ? 1 : size_of(e.b.from->dtype).value);
  product.a = matrix_of(e.a, scratch + kFactors, codes, e.a_turned, !codes && e.a_turned, scratch, 0);
  product.b = matrix_of(e.b, scratch + place_of_b + skipped, codes, e.b_turned, codes || b_transposed, scratch, 1);
  product.c = {.data = c.data + at * size_of(c.dtype).value, .row = e.n, .dtype = c.dtype};
  product.keep = keep ? 1.0F : 0.0F;
  return product;
}

// All products of a layer and phase.
std::vector<Eighth> products_of(const host::Form& form, std::span<const Operand> reads,
                                const std::vector<std::int64_t>& parts) {
  const std::int64_t m = form.dims(0, 4)[1], n = form.dims(0, 4)[2], k = form.dims(0, 4)[3];
  std::vector<Eighth> all;
  std::int64_t at = 0;
  for (std::size_t part = 0; part < parts.size(); at += parts[part++]) {
    const std::int64_t columns = parts[part];
    const Factor dy = {&reads[part], m, columns, true};
    if (form.forward()) {
      all.push_back({.a = {&reads[0], m, k}, .b = {&reads[1], n, k}, .m = m, .n = columns, .k = k, .first_of_b = at});
    } else if (form.what.phase == Phase::InputGrad) {
      const std::size_t weight = reads.size() == parts.size() + 1 ? parts.size() : parts.size() + 1;
      all.push_back({.a = dy, .b = {&reads[weight], n, k}, .b_turned = true, .m = m, .n = k, .k = columns, .first_of_b = at});
    } else {
      all.push_back(
          {.a = dy, .b = {&reads[parts.size()], m, k}, .a_turned = true, .b_turned = true, .m = columns, .n = k, .k = m});
    }
  }
  return all;
}

struct Layer {
  Compute what = {};
  std::vector<std::int64_t> parts = {};  // columns of the parts of y
  bool forward = false, weights = false, bias = false, codes = false;

  std::vector<Eighth> products(std::span<const Operand> reads, std::span<const Operand> writes) const {
    return products_of({what, reads, writes}, reads, parts);
  }
  // Of columns from `at` on.
  Multiply product(const std::vector<Eighth>& all, std::size_t part, std::int64_t at, const Call& call) const {
    const bool keep = what.accumulate || (!forward && !weights && part > 0);
    Multiply product = product_of(all[part], call.scratch, place_of_b(all), codes, call.writes[forward ? part : 0],
                                  weights ? at * all[part].n : 0, keep);
    if (forward && bias) product.bias = call.reads[2].data + at * size_of(call.reads[2].dtype).value;
    return product;
  }
  bool in_codes(const Call& call, Runtime& library) const {
    const std::vector<Eighth> all = products(call.reads, call.writes);
    std::int64_t at = 0;
    for (std::size_t part = 0; part < all.size(); at += parts[part++])
      if (library.algorithms(product(all, part, at, call), kMultiplyWorkspace, 1).empty()) return false;
    return true;
  }
  void run(const Launcher& on, const Call& call) const {
    const std::vector<Eighth> all = products(call.reads, call.writes);
    const Operand* held[2] = {};  // a factor of several products is rounded once
    const auto hold = [&](const Factor& factor, int which, std::int64_t place, bool turned) {
      if (held[which] == factor.from) return;
      held[which] = factor.from;
      find_scale(on, factor, call.scratch, which);
      round_factor(on, factor, call.scratch, which, call.scratch + place, codes, codes && turned);
    };
    std::int64_t at = 0;
    for (std::size_t part = 0; part < all.size(); at += parts[part++]) {
      const Eighth& e = all[part];
      hold(e.a, 0, kFactors, e.a_turned), hold(e.b, 1, place_of_b(all), e.b_turned);
      on.multiply(product(all, part, at, call));
      if (!weights || !bias) continue;
      ColumnSumArgs sum = {.x = reads(call.reads[part]), .out = writes(call.writes[1]), .rows = e.k, .columns = e.m};
      sum.out.data = static_cast<std::byte*>(sum.out.data) + at * bytes_of(sum.out.type), sum.out.elements -= at;
      sum.accumulate = what.accumulate;
      on.sum_columns(sum, call.scratch + behind(all));
    }
  }
};

}  // namespace

// The operands have been looked at.
Kernel make_eight_bit_matmul(const host::Form& form, const std::vector<std::int64_t>& parts, Runtime* libraries) {
  Layer layer{.what = form.what, .parts = parts, .forward = form.forward(), .weights = form.what.phase == Phase::WeightGrad};
  layer.bias = layer.forward ? form.reads.size() == 3 : layer.weights && form.writes.size() == 2;
  auto* scratch = reinterpret_cast<std::byte*>(std::uintptr_t{1} << 20U);  // only where it begins is looked at
  const OpArguments none;
  const Call planned{
      .reads = form.reads, .writes = form.writes, .scratch = scratch, .staged = {}, .table = {}, .arguments = none};
  if (libraries) {
    layer.codes = true;
    layer.codes = layer.in_codes(planned, *libraries);
  }
  const std::vector<std::int64_t>& dims = form.dims(0, 4);
  const std::int64_t sums = layer.weights && layer.bias ? column_sum_scratch(dims[1], dims[2]).value : 0;
  const bool clears = form.as<ops::MatMul>().first_token && form.what.phase == Phase::InputGrad && !form.what.accumulate;
  return {.run =
              [layer, clears](const Launcher& on, const Call& call) {
                if (clears) on.fill(call.writes[0], std::byte{0});
                layer.run(on, call);
              },
          .scratch = {behind(layer.products(form.reads, form.writes)) + sums},
          .multiplies = true};
}

}  // namespace foreshard::gpu
