#include "exec/cuda_ops/gpu_kernel.h"

#include <algorithm>
#include <array>

#include "core/base/error.h"
#include "exec/arithmetic/loss_scale_state.h"
#include "exec/cuda/product_choice.h"

namespace foreshard::gpu {

// The makers, one per operator, which are in gpu_*.cpp of this folder. They throw Error for a form that GPUs cannot run.
Kernel make_matmul(const host::Form& form, Runtime* libraries);
Kernel make_scores(const host::Form& form);
Kernel make_weighted_values(const host::Form& form);
Kernel make_scale(const host::Form& form);
Kernel make_softmax(const host::Form& form);
Kernel make_attention(const host::Form& form, const Libraries& libraries);
Kernel make_merge_attention(const host::Form& form);
Kernel make_head_parts(const host::Form& form);
Kernel make_head_norm(const host::Form& form);
Kernel make_latent_heads(const host::Form& form);
Kernel make_rope(const host::Form& form);
Kernel make_norm(const host::Form& form);
Kernel make_activation(const host::Form& form);
Kernel make_dropout(const host::Form& form);
Kernel make_add(const host::Form& form);
Kernel make_token_embedding(const host::Form& form);
Kernel make_position_embedding(const host::Form& form);
Kernel make_sample(const host::Form& form);
Kernel make_cross_entropy(const host::Form& form);
Kernel make_sum_of_squares(const host::Form& form);
Kernel make_update(const host::Form& form, bool adam);
Kernel make_grad_norm(const host::Form& form);
Kernel make_clip_scale(const host::Form& form);
Kernel make_judge_overflow(const host::Form& form);
Kernel make_cast(const host::Form& form);
Kernel make_zero(const host::Form& form);
Kernel make_encode(const host::Form& form);
Kernel make_decode(const host::Form& form);
Kernel make_token_scores(const host::Form& form);
Kernel make_keep_tokens(const host::Form& form);
Kernel make_kept_rows(const host::Form& form, bool takes, std::int64_t parts);
Kernel make_conv2d(const host::Form& form);
Kernel make_batch_norm(const host::Form& form);
Kernel make_pool(const host::Form& form);
Kernel make_route(const host::Form& form);
Kernel make_balance_experts(const host::Form& form);
Kernel make_dispatch(const host::Form& form);
Kernel make_combine(const host::Form& form);
Kernel make_send_once(const host::Form& form);
Kernel make_grouped_matmul(const host::Form& form);

namespace {

constexpr std::int64_t kMostChunks = 64, kFewestRows = 64;       // column sums: most chunks, fewest rows of a chunk
constexpr std::int64_t kMostBlocks = 1024, kFewestTerms = 4096;  // sums of terms: most blocks, fewest terms of a block

std::int64_t rows_of_chunk(std::int64_t rows) { return std::max(kFewestRows, ceil_div(rows, kMostChunks)); }
std::int64_t terms_of_block(std::int64_t terms) { return std::max(kFewestTerms, round_up(ceil_div(terms, kMostBlocks), 8)); }

struct Make {
  const host::Form& form;
  const Libraries& libraries;

  Kernel operator()(const ops::MatMul&) const { return make_matmul(form, libraries.runtime); }
  Kernel operator()(const ops::Scores&) const { return make_scores(form); }
  Kernel operator()(const ops::WeightedValues&) const { return make_weighted_values(form); }
  Kernel operator()(const ops::Attention&) const { return make_attention(form, libraries); }
  Kernel operator()(const ops::Softmax&) const { return make_softmax(form); }
  Kernel operator()(const ops::Norm&) const { return make_norm(form); }
  Kernel operator()(const ops::Activation&) const { return make_activation(form); }
  Kernel operator()(const ops::Dropout&) const { return make_dropout(form); }
  Kernel operator()(const ops::Add&) const { return make_add(form); }
  Kernel operator()(const ops::Rope&) const { return make_rope(form); }
  Kernel operator()(const ops::TokenEmbedding&) const { return make_token_embedding(form); }
  Kernel operator()(const ops::PositionEmbedding&) const { return make_position_embedding(form); }
  Kernel operator()(const ops::Sample&) const { return make_sample(form); }
  Kernel operator()(const ops::CrossEntropy&) const { return make_cross_entropy(form); }
  Kernel operator()(const ops::SumOfSquares&) const { return make_sum_of_squares(form); }
  Kernel operator()(const ops::Adam&) const { return make_update(form, true); }
  Kernel operator()(const ops::Sgd&) const { return make_update(form, false); }
  Kernel operator()(const ops::GradNorm&) const { return make_grad_norm(form); }
  Kernel operator()(const ops::ClipScale&) const { return make_clip_scale(form); }
  Kernel operator()(const ops::JudgeOverflow&) const { return make_judge_overflow(form); }
  Kernel operator()(const ops::Cast&) const { return make_cast(form); }
  Kernel operator()(const ops::Zero&) const { return make_zero(form); }
  Kernel operator()(const ops::Conv2d&) const { return make_conv2d(form); }
  Kernel operator()(const ops::BatchNorm&) const { return make_batch_norm(form); }
  Kernel operator()(const ops::MaxPool&) const { return make_pool(form); }
  Kernel operator()(const ops::AvgPool&) const { return make_pool(form); }
  Kernel operator()(const ops::MergeAttention&) const { return make_merge_attention(form); }
  Kernel operator()(const ops::HeadParts&) const { return make_head_parts(form); }
  Kernel operator()(const ops::Encode&) const { return make_encode(form); }
  Kernel operator()(const ops::Decode&) const { return make_decode(form); }
  Kernel operator()(const ops::TokenScores&) const { return make_token_scores(form); }
  Kernel operator()(const ops::KeepTokens&) const { return make_keep_tokens(form); }
  Kernel operator()(const ops::TakeRows& op) const { return make_kept_rows(form, form.forward(), op.parts); }
  Kernel operator()(const ops::PutRows& op) const { return make_kept_rows(form, !form.forward(), op.parts); }
  Kernel operator()(const ops::HeadNorm&) const { return make_head_norm(form); }
  Kernel operator()(const ops::Scale&) const { return make_scale(form); }
  Kernel operator()(const ops::LatentHeads&) const { return make_latent_heads(form); }
  Kernel operator()(const ops::Route&) const { return make_route(form); }
  Kernel operator()(const ops::BalanceExperts&) const { return make_balance_experts(form); }
  Kernel operator()(const ops::Dispatch&) const { return make_dispatch(form); }
  Kernel operator()(const ops::Combine&) const { return make_combine(form); }
  Kernel operator()(const ops::SendOnce&) const { return make_send_once(form); }
  Kernel operator()(const ops::GroupedMatMul&) const { return make_grouped_matmul(form); }
};

Kernel make(const host::Form& form, const Libraries& libraries) { return std::visit(Make{form, libraries}, form.what.op); }

}  // namespace

Kernel make_kernel(const Compute& what, std::span<const Operand> reads, std::span<const Operand> writes,
                   const Libraries& libraries) {
  const host::Form form{what, reads, writes};
  for (const auto& operands : {reads, writes})
    for (const Operand& operand : operands)
      if (operand.dtype == DType::F64 || is_code(operand.dtype) || operand.dtype == DType::I32)
        form.refuse(std::string("an operand in ") + name_of(operand.dtype), "fp32, tf32, bf16 or fp16 on a GPU");
  if (host::has_factors(what, writes)) {
    Kernel kernel = make({what, reads, writes.first(writes.size() - 1), writes.back()}, libraries);
    kernel.run = [run = std::move(kernel.run)](const Launcher& on, const Call& call) {
      Call inner = call;
      inner.factors = call.writes.back().data;
      inner.writes = call.writes.first(call.writes.size() - 1);
      run(on, inner);
    };
    return kernel;
  }
  if (!form.what.dynamic_scale) return make(form, libraries);
  if (form.reads.empty() || form.reads.back().dtype != DType::F32 || form.reads.back().elements < kLossScaleFloats)
    form.refuse("no state of the loss scale", std::to_string(kLossScaleFloats) + " fp32 numbers as the last read");
  Kernel kernel = make({what, reads.first(reads.size() - 1), writes}, libraries);
  kernel.run = [run = std::move(kernel.run)](const Launcher& on, const Call& call) {
    Call scaled = call;
    scaled.state = gpu::reads(call.reads.back());
    scaled.reads = call.reads.first(call.reads.size() - 1);
    run(on, scaled);
  };
  return kernel;
}

Type type_of(DType dtype) {
  switch (dtype) {
    case DType::F32:
    case DType::TF32: return Type::F32;
    case DType::BF16: return Type::BF16;
    case DType::F16: return Type::F16;
    case DType::F64: return Type::F64;
    case DType::I64: return Type::I64;
    case DType::U8: return Type::U8;
    case DType::I32:
    case DType::F8:
    case DType::F4: break;
  }
  FS_ASSERT(!"a type that kernels know");
}

std::int64_t bytes_of(Type type) {
  constexpr std::array<std::int64_t, 6> kBytes = {4, 2, 2, 8, 8, 1};
  return kBytes[static_cast<std::size_t>(type)];
}

void expect_factors(const host::Form& form, const Operand& a, const Operand& b) {
  if (type_of(a.dtype) != type_of(b.dtype))
    form.refuse(std::string("factors in ") + name_of(a.dtype) + " and " + name_of(b.dtype), "one number format");
}

Positions positions_of(const RowPositions& rows) { return {rows.first, rows.length, rows.second}; }
GatheredOrder gathered_order(const SequenceSplit& split, std::int64_t rows) {
  if (split.parts() == 1 || split.chunks == 1) return {};
  return {.chunk = rows / 2, .ranks = split.ranks};
}

View reads(const Operand& operand) {
  return {.data = operand.data, .elements = operand.elements, .type = type_of(operand.dtype)};
}
View writes(const Operand& operand) {
  View array = reads(operand);
  array.writes = true;
  return array;
}
View scratch_array(std::byte* at, std::int64_t elements, Type type) {
  return {.data = at, .elements = elements, .type = type, .writes = true};
}

bool in_packs(std::initializer_list<View> arrays, std::int64_t rows, std::int64_t columns) {
  constexpr std::int64_t kMostElements = std::int64_t{1} << 30U;
  const Type type = arrays.begin()->type;
  if (!has_packs(type) || columns % pack_of(type) != 0 || rows * columns > kMostElements) return false;
  return std::all_of(arrays.begin(), arrays.end(),
                     [&](const View& array) { return !array.data || (array.type == type && on_pack_border(array)); });
}

int warps_of_row(std::initializer_list<View> arrays, std::int64_t rows, std::int64_t columns) {
  if (!in_packs(arrays, rows, columns)) return 0;
  const std::int64_t of_warp = std::int64_t{32} * kHeldPacks * pack_of(arrays.begin()->type);
  for (const int warps : {1, 2, 4, 8})
    if (columns <= warps * of_warp) return warps;
  return 0;
}

void Launcher::fill(const Operand& operand, std::byte with) const {
  const Bytes bytes = size_of(operand.dtype) * operand.elements;
  if (runtime_ && bytes.value > 0) runtime_->fill(operand.data, with, bytes, stream_);
}

void Launcher::multiply(const Multiply& product) const {
  if (products_) return products_->push_back(product);
  Multiply chosen = product;
  if (choice_) chosen.algorithm = choice_->of(product, gpu_);
  runtime_->multiply(chosen, workspace_, kMultiplyWorkspace, stream_);
}

Bytes column_sum_scratch(std::int64_t rows, std::int64_t columns) {
  const std::int64_t chunks = ceil_div(rows, rows_of_chunk(rows));
  return {chunks > 1 ? 4 * chunks * columns : 0};
}

void Launcher::sum_columns(ColumnSumArgs args, std::byte* scratch) const {
  args.rows_of_chunk = rows_of_chunk(args.rows);
  const std::int64_t chunks = ceil_div(args.rows, args.rows_of_chunk);
  if (chunks == 1) return sum_chunks(args, 1);
  ColumnSumArgs part = args;
  part.accumulate = false;
  part.out = scratch_array(scratch, chunks * args.columns, Type::F32);
  sum_chunks(part, chunks);
  ColumnSumArgs rest = {.x = part.out, .out = args.out, .rows = chunks, .columns = args.columns, .rows_of_chunk = chunks};
  rest.x.writes = false;
  rest.accumulate = args.accumulate;
  sum_chunks(rest, 1);
}

void Launcher::sum_chunks(const ColumnSumArgs& args, std::int64_t chunks) const {
  const bool packed =
      args.factor != Factor::Normalised && in_packs({args.x}, args.rows, args.columns) && on_pack_border(args.mask);
  const std::int64_t columns_of_block = packed ? 32 * pack_of(args.x.type) : 32;
  launch(packed ? KernelId::column_sums_packed : KernelId::column_sums, ceil_div(args.columns, columns_of_block), chunks, 256,
         args);
}

void Launcher::add_sums(View sums, const View& to, bool accumulate) const {
  sums.writes = false;
  AddArgs args = {.y = to, .rows = 1, .columns = sums.elements, .count = 1, .accumulate = accumulate};
  args.inputs[0] = sums;
  elements(KernelId::add_arrays, sums.elements, args);
}

Bytes term_sum_scratch(std::int64_t terms) { return {8 * std::max<std::int64_t>(1, ceil_div(terms, terms_of_block(terms)))}; }

void Launcher::sum_terms(TermSumArgs args, std::byte* scratch) const {
  args.per_block = terms_of_block(args.count);
  const std::int64_t blocks = std::max<std::int64_t>(1, ceil_div(args.count, args.per_block));
  if (blocks == 1) return launch(KernelId::sum_terms, 1, 1, 256, args);
  TermSumArgs part = args;
  part.out = scratch_array(scratch, blocks, Type::F64);
  part.weight = 1, part.accumulate = false;
  launch(KernelId::sum_terms, blocks, 1, 256, part);
  TermSumArgs rest = {.x = part.out, .out = args.out, .count = blocks, .per_block = blocks, .weight = args.weight};
  rest.x.writes = false;
  rest.terms = Terms::Given, rest.accumulate = args.accumulate;
  launch(KernelId::sum_terms, 1, 1, 256, rest);
}

}  // namespace foreshard::gpu
