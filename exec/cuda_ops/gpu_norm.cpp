// LayerNorm and RMSNorm.
#include <algorithm>

#include "exec/cuda_ops/gpu_kernel.h"

namespace foreshard::gpu {

namespace {

// Number of blocks of the backward with packs: constant, so that the order of sums does not depend on the GPU; two per multiprocessor of an
// H100.
constexpr std::int64_t kMostNormBlocks = 264;
std::int64_t norm_blocks(std::int64_t rows) { return std::clamp<std::int64_t>(ceil_div(rows, 4), 1, kMostNormBlocks); }

// Threads of a block that processes rows with packs; 0: packs cannot be used.
int norm_threads(std::initializer_list<View> arrays, std::int64_t rows, std::int64_t h) {
  const std::int64_t packs = h / pack_of(arrays.begin()->type);
  if (!in_packs(arrays, rows, h) || packs > std::int64_t{512} * kColumnPacks) return 0;
  return static_cast<int>(round_up(ceil_div(packs, kColumnPacks), 32));
}

struct NormGradients {
  View dw, db;  // db has no data for RMSNorm
  bool accumulate;
};

void norm_backward_in_packs(const Launcher& on, NormGradArgs args, const NormGradients& gradients, int threads,
                            std::byte* scratch) {
  const std::int64_t blocks = norm_blocks(args.rows), part = blocks * args.h;
  args.sums = scratch_array(scratch, args.centred ? 2 * part : part, Type::F32);
  on.launch(KernelId::norm_backward_packed, blocks, 1, threads, args);
  for (const View& out : {gradients.dw, gradients.db}) {
    if (!out.data) continue;
    ColumnSumArgs sum = {
        .out = out, .rows = blocks, .columns = args.h, .rows_of_chunk = blocks, .accumulate = gradients.accumulate};
    sum.x = scratch_array(scratch + (out.data == gradients.db.data ? 4 * part : 0), part, Type::F32);
    sum.x.writes = false;
    on.sum_chunks(sum, 1);
  }
}

// Without packs. If the gradient of the input is in place, it is written last, because the sums of the weights read what it overwrites.
void norm_backward_in_rows(const Launcher& on, const NormGradArgs& args, const NormGradients& gradients, std::byte* scratch) {
  const bool in_place = args.dx.data && (args.dx.data == args.dy.data || args.dx.data == args.x.data);
  NormGradArgs first = args;
  first.stats = scratch_array(scratch + round_up(column_sum_scratch(args.rows, args.h).value, 256), 2 * args.rows, Type::F32);
  if (!args.dx.data || in_place) first.dy = {}, first.weight = {}, first.dx = {};
  on.rows(KernelId::norm_input_grad, args.rows, first);
  ColumnSumArgs sum = {.x = args.dy, .other = args.x, .stats = first.stats, .out = gradients.dw, .rows = args.rows};
  sum.stats.writes = false;
  sum.columns = args.h, sum.factor = Factor::Normalised, sum.accumulate = gradients.accumulate;
  on.sum_columns(sum, scratch);
  if (gradients.db.data)
    on.sum_columns(
        {.x = args.dy, .out = gradients.db, .rows = args.rows, .columns = args.h, .accumulate = gradients.accumulate}, scratch);
  if (!in_place) return;
  NormGradArgs last = args;
  last.stats = first.stats;
  on.rows(KernelId::norm_input_grad, args.rows, last);
}

// The gradient of the input alone: the weights are frozen.
Kernel norm_input_gradient(const host::Form& form, NormGradArgs args) {
  const std::int64_t size = args.rows * args.h;
  std::vector<std::int64_t> sizes = {size, size};
  sizes.insert(sizes.end(), args.centred ? 2 : 1, args.h);
  form.expect(sizes, {size});
  args.accumulate = form.what.accumulate;
  return {.run = [=](const Launcher& on, const Call& call) {
    NormGradArgs grad = args;
    grad.dy = reads(call.reads[0]), grad.x = reads(call.reads[1]), grad.weight = reads(call.reads[2]);
    grad.dx = writes(call.writes[0]);
    on.rows(KernelId::norm_input_grad, args.rows, grad);
  }};
}

Kernel norm_backward(const host::Form& form, NormGradArgs args) {
  const std::int64_t size = args.rows * args.h, h = args.h;
  const std::size_t weights = args.centred ? 2 : 1;
  const bool input = form.writes.size() == weights + 1;  // the gradient of the input is wanted
  std::vector<std::int64_t> sizes = {size, size}, out;
  if (input) out.push_back(size);
  sizes.insert(sizes.end(), weights, h);
  out.insert(out.end(), weights, h);
  form.expect(sizes, out);
  args.accumulate = form.what.accumulate;
  const bool add_weights = form.what.accumulate_weights;
  const Bytes in_rows = {round_up(column_sum_scratch(args.rows, h).value, 256) + 8 * args.rows};
  const Bytes in_packs = {4 * norm_blocks(args.rows) * h * static_cast<std::int64_t>(weights)};
  return {.run =
              [=](const Launcher& on, const Call& call) {
                NormGradArgs grad = args;
                grad.dy = reads(call.reads[0]), grad.x = reads(call.reads[1]), grad.weight = reads(call.reads[2]);
                if (input) grad.dx = writes(call.writes[0]);
                const std::size_t first = input ? 1 : 0;
                const NormGradients gradients = {writes(call.writes[first]),
                                                 weights == 2 ? writes(call.writes[first + 1]) : View{}, add_weights};
                const int threads = norm_threads({grad.x, grad.dy, grad.weight, grad.dx}, grad.rows, grad.h);
                if (threads > 0) return norm_backward_in_packs(on, grad, gradients, threads, call.scratch);
                norm_backward_in_rows(on, grad, gradients, call.scratch);
              },
          .scratch = std::max(in_rows, in_packs)};
}

}  // namespace

Kernel make_norm(const host::Form& form) {
  const auto& dims = form.dims(0, 2);
  const bool centred = form.as<ops::Norm>().kind == NormKind::LayerNorm;
  const std::int64_t rows = dims[0], h = dims[1], size = rows * h;
  const auto eps = static_cast<float>(form.as<ops::Norm>().eps);
  const float one = form.as<ops::Norm>().around_one ? 1 : 0;
  const NormGradArgs sizes = {.rows = rows, .h = h, .eps = eps, .one = one, .centred = centred};
  if (form.what.phase == Phase::Backward) return norm_backward(form, sizes);
  if (form.what.phase == Phase::InputGrad) return norm_input_gradient(form, sizes);
  if (!form.forward()) form.refuse("this phase", "forward, recompute, backward or input gradient");
  form.expect(centred ? std::vector{size, h, h} : std::vector{size, h}, {size});
  return {.run = [=](const Launcher& on, const Call& call) {
    NormArgs args = {
        .x = reads(call.reads[0]), .weight = reads(call.reads[1]), .y = writes(call.writes[0]), .rows = rows, .h = h};
    if (centred) args.bias = reads(call.reads[2]);
    args.eps = eps, args.one = one, args.centred = centred;
    args.warps_of_row = warps_of_row({args.x, args.weight, args.bias, args.y}, rows, h);
    on.held_rows(KernelId::norm_forward, rows, args.warps_of_row, args);
  }};
}

}  // namespace foreshard::gpu
