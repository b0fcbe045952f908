// Fused attention: by cuDNN if it supports the form, else by our kernels: on tensor cores for bf16 and the head sizes of kernels/flash.h,
// else with one warp per row.
#include <array>
#include <cmath>
#include <cstring>

#include "exec/base/philox.h"
#include "exec/cuda_ops/gpu_kernel.h"
#include "exec/host/host_dropout.h"
#include "exec/host/host_heads.h"

namespace foreshard::gpu {

namespace {

constexpr std::int64_t kMostBlocksY = 65535, kMostFlashRows = std::int64_t{1} << 30;

struct AttentionForm {
  host::HeadLayout at = {};
  bool causal = false, drops = false, accumulate = false;
  host::DropRule drop = {};
  ops::Attention op = {};

  std::int64_t all_queries() const { return at.queries * op.split.parts(); }  // of the whole sequence
  std::int64_t all_keys() const { return at.keys * op.blocks; }

  std::size_t key() const { return at.apart ? 1 : 0; }  // index of the operand of keys and values
  float scale() const { return static_cast<float>(op.scale > 0 ? op.scale : 1 / std::sqrt(static_cast<double>(at.dim))); }
  std::int64_t context_size() const { return at.samples * at.queries * at.heads * at.values(); }
  std::int64_t lse_size() const { return at.samples * at.heads * at.queries; }
};

// The elements of an array from `at` on.
View part(View array, DType dtype, std::int64_t at) {
  array.data = static_cast<std::byte*>(array.data) + at * size_of(dtype).value;
  array.elements -= at;
  return array;
}
View keys_of(const AttentionForm& form, const Operand& operand, bool write) {
  return part(write ? writes(operand) : reads(operand), operand.dtype, form.at.key_at(0, 0));
}
View values_of(const AttentionForm& form, const Operand& operand, bool write) {
  return part(write ? writes(operand) : reads(operand), operand.dtype, form.at.value_at(0, 0));
}

AttentionArgs numbers(const AttentionForm& form, const OpArguments& given) {
  const host::HeadLayout& at = form.at;
  AttentionArgs args = {};
  args.samples = at.samples, args.queries = at.queries, args.keys = at.keys;
  args.heads = at.heads, args.kv_heads = at.kv_heads, args.dim = at.dim, args.value_dim = at.values();
  args.mask.window = form.op.window, args.mask.chunk = form.op.chunk, args.score.cap = static_cast<float>(form.op.score_cap);
  args.query_steps = {.position = at.query_stride(), .sample = at.query_width()};
  args.key_steps = {.position = at.key_stride(), .sample = at.key_width()};
  args.score.scale = form.scale();
  args.mask.causal = form.causal, args.accumulate = form.accumulate;
  args.drop = {.seed = given.seed,
               .key = mix_keys(mix_keys(name_key("dropout"), given.layer), form.drop.site),
               .first_head = host::first_head(form.op.split, at.heads, given),
               .first_sample = given.first_sample,
               .all_queries = form.all_queries(),
               .all_keys = form.all_keys(),
               .threshold = form.drop.threshold,
               .scale = static_cast<float>(form.drop.scale),
               .drops = form.drops};
  const SequenceSplit& split = form.op.split;
  args.mask.query_positions = positions_of(split.rows_of(given.cp_rank, at.queries));
  if (form.op.blocks > 1)
    args.mask.key_positions = positions_of(split.rows_of((given.cp_rank - form.op.block + split.ranks) % split.ranks, at.keys));
  else
    args.mask.order = gathered_order(split, at.keys / split.parts());
  return args;
}

// The operands that have rows of heads: all but the lse and the sinks.
std::vector<Operand> head_rows(const host::Form& form, const AttentionForm& attention) {
  const bool forward = form.forward();
  const std::span<const Operand> in = form.reads.first(attention.key() + (forward ? 1 : 3)),
                                 out = form.writes.first(forward ? 1 : attention.key() + 1);
  std::vector<Operand> rows(in.begin(), in.end());
  rows.insert(rows.end(), out.begin(), out.end());
  return rows;
}

// The kernels for tensor cores (kernels/flash.h) of a head size.
struct FlashKernels {
  std::int64_t dim = 0, value_dim = 0;
  KernelId forward = {}, query_grad = {}, key_grad = {};
};
constexpr FlashKernels kFlashKernels[] = {
    {64, 64, KernelId::flash_forward_64, KernelId::flash_query_grad_64, KernelId::flash_key_grad_64},
    {96, 96, KernelId::flash_forward_96, KernelId::flash_query_grad_96, KernelId::flash_key_grad_96},
    {128, 128, KernelId::flash_forward_128, KernelId::flash_query_grad_128, KernelId::flash_key_grad_128},
    {192, 128, KernelId::flash_forward_192, KernelId::flash_query_grad_192, KernelId::flash_key_grad_192},
    {256, 256, KernelId::flash_forward_256, KernelId::flash_query_grad_256, KernelId::flash_key_grad_256}};
// Null: they cannot run it.
const FlashKernels* flash_kernels(const host::Form& form, const AttentionForm& attention) {
  const host::HeadLayout& at = attention.at;
  if (attention.drops || at.samples * at.heads > kMostBlocksY || std::max(at.queries, at.keys) > kMostFlashRows) return nullptr;
  for (const Operand& operand : head_rows(form, attention))
    if (operand.dtype != DType::BF16) return nullptr;
  for (const FlashKernels& kernels : kFlashKernels)
    if (kernels.dim == at.dim && kernels.value_dim == at.values()) return &kernels;
  return nullptr;
}

// cuDNN is used for 16-bit numbers, gradients that are not accumulated, and attention that is not causal or whose keys lie in the order of
// their positions (so not for a causal model whose positions are split over context-parallel ranks); without chunks, sinks and caps. cuDNN makes its own dropout masks.
// They differ from those of the host and of our kernels, and depend on how heads and samples are split over ranks.
AttentionCall library_call(const AttentionForm& form, DType dtype, bool backward) {
  const host::HeadLayout& at = form.at;
  AttentionCall call = {
      .samples = at.samples, .heads = at.heads, .kv_heads = at.kv_heads, .queries = at.queries, .keys = at.keys};
  call.dim = at.dim, call.dtype = dtype, call.causal = form.causal, call.backward = backward;
  call.value_dim = at.values(), call.window = form.op.window, call.scale = form.scale();
  if (form.drops) call.dropped = static_cast<float>(form.op.p);
  call.q = call.dq = {nullptr, at.query_width(), at.dim, at.query_stride()};
  call.k = call.dk = {nullptr, at.key_width(), at.dim, at.key_stride()};
  call.v = call.dv = {nullptr, at.key_width(), at.values(), at.key_stride()};
  call.context = call.dcontext = {nullptr, at.heads * at.values(), at.values(), at.context_stride()};
  return call;
}
struct LibraryPlan {
  AttentionCall call = {};
  Bytes workspace = {};
};
// Empty: the library does not have it.
std::optional<LibraryPlan> by_library(const host::Form& form, const AttentionForm& attention, const Libraries& libraries) {
  if (!libraries.runtime) return {};
  const DType dtype = form.reads.empty() ? DType::F32 : form.reads[0].dtype;
  const bool backward = !form.forward();
  if ((dtype != DType::BF16 && dtype != DType::F16) || (backward && attention.accumulate)) return {};
  if (attention.causal && attention.op.split.parts() > 1) return {};
  if (attention.op.chunk > 0 || attention.op.sinks || attention.op.score_cap > 0) return {};
  for (const Operand& operand : head_rows(form, attention))
    if (operand.dtype != dtype || !on_pack_border(reads(operand))) return {};
  AttentionCall call = library_call(attention, dtype, backward);
  call.any_order = backward && libraries.any_order;
  const std::optional<Bytes> workspace = libraries.runtime->attention_workspace(call);
  if (!workspace) return {};
  return LibraryPlan{call, *workspace};
}

// Seed and offset of cuDNN's dropout mask. The seed differs by layer, micro-batch, head and part of the sequence, and is the same in
// forward, recomputation and backward.
std::array<std::int64_t, 2> random_of(const AttentionForm& form, const OpArguments& given) {
  std::uint64_t seed = mix_keys(mix_keys(mix_keys(name_key("dropout"), given.layer), form.drop.site), given.seed);
  for (const std::int64_t place : {given.first_sample, host::first_head(form.op.split, form.at.heads, given),
                                   std::int64_t{given.cp_rank}, std::int64_t{form.op.block}})
    seed = mix_keys(seed, static_cast<std::uint64_t>(place));
  return {static_cast<std::int64_t>(seed), 0};
}

constexpr std::int64_t kRandomBytes = 2 * sizeof(std::int64_t);
constexpr Bytes kRandom = {256};  // scratch memory for seed and offset, padded so that the library's workspace is aligned

// `put` sets the addresses of the arrays. With dropout, the host prepares seed and offset before every run.
template <class Put>
Kernel library_kernel(const AttentionForm& form, const LibraryPlan& plan, Put put) {
  const AttentionCall& planned = plan.call;
  Kernel kernel = {.run =
                       [planned, put](const Launcher& on, const Call& call) {
                         AttentionCall now = planned;
                         put(now, call);
                         if (planned.dropped == 0) return on.attention(now, call.scratch);
                         now.random = call.scratch;
                         on.copy(now.random, call.staged, {kRandomBytes});
                         on.attention(now, call.scratch + kRandom.value);
                       },
                   .scratch = plan.workspace};
  if (planned.dropped == 0) return kernel;
  kernel.scratch += kRandom;
  kernel.staged = {kRandomBytes};
  kernel.prepare = [form](std::byte* to, const OpArguments& given) {
    const std::array<std::int64_t, 2> random = random_of(form, given);
    std::memcpy(to, random.data(), sizeof random);
  };
  return kernel;
}

Kernel forward_by_library(const AttentionForm& attention, const LibraryPlan& plan) {
  return library_kernel(attention, plan, [attention](AttentionCall& now, const Call& call) {
    const Operand& key = call.reads[attention.key()];
    now.q.data = call.reads[0].data;
    now.k.data = static_cast<std::byte*>(keys_of(attention, key, false).data);
    now.v.data = static_cast<std::byte*>(values_of(attention, key, false).data);
    now.context.data = call.writes[0].data, now.lse = call.writes[1].data;
  });
}

Kernel backward_by_library(const AttentionForm& attention, const LibraryPlan& plan) {
  return library_kernel(attention, plan, [attention](AttentionCall& now, const Call& call) {
    const std::size_t key = attention.key();
    now.dcontext.data = call.reads[0].data, now.q.data = call.reads[1].data;
    now.k.data = static_cast<std::byte*>(keys_of(attention, call.reads[1 + key], false).data);
    now.v.data = static_cast<std::byte*>(values_of(attention, call.reads[1 + key], false).data);
    now.context.data = call.reads[2 + key].data, now.lse = call.reads[3 + key].data;
    now.dq.data = call.writes[0].data;
    now.dk.data = static_cast<std::byte*>(keys_of(attention, call.writes[key], true).data);
    now.dv.data = static_cast<std::byte*>(values_of(attention, call.writes[key], true).data);
  });
}

// `tiled`: one of the kernels for tensor cores; `plain`: that with a warp per row.
void launch(const Launcher& on, const AttentionForm& form, std::optional<KernelId> tiled, KernelId plain, std::int64_t rows,
            std::int64_t heads, const AttentionArgs& args) {
  const std::int64_t batches = form.at.samples * heads;
  if (tiled) return on.launch(*tiled, ceil_div(rows, 64), batches, 128, args);
  on.rows(plain, batches * rows, args);
}

void run_backward(const AttentionForm& attention, const FlashKernels* flash, bool add_sinks, const Launcher& on,
                  const Call& call) {
  const host::HeadLayout& at = attention.at;
  const std::size_t key = attention.key();
  AttentionArgs delta = numbers(attention, call.arguments), grad = delta;
  delta.context = reads(call.reads[2 + key]), delta.dcontext = reads(call.reads[0]);
  delta.delta = scratch_array(call.scratch, attention.lse_size(), Type::F32);
  on.rows(KernelId::attention_delta, attention.lse_size(), delta);
  grad.delta = delta.delta, grad.delta.writes = false, grad.lse = reads(call.reads[3 + key]);
  if (attention.op.sinks) {
    AttentionArgs sinks = grad;
    sinks.sinks = reads(call.reads[4 + key]), sinks.dsinks = writes(call.writes[1 + key]), sinks.accumulate = add_sinks;
    on.launch(KernelId::attention_sink_grad, at.heads, 1, 256, sinks);
  }
  grad.dcontext = delta.dcontext, grad.q = reads(call.reads[1]);
  grad.k = keys_of(attention, call.reads[1 + key], false), grad.v = values_of(attention, call.reads[1 + key], false);
  AttentionArgs query = grad;
  query.dq = writes(call.writes[0]);
  launch(on, attention, flash ? std::optional(flash->query_grad) : std::nullopt, KernelId::attention_query_grad, at.queries,
         at.heads, query);
  grad.dk = keys_of(attention, call.writes[key], true), grad.dv = values_of(attention, call.writes[key], true);
  launch(on, attention, flash ? std::optional(flash->key_grad) : std::nullopt, KernelId::attention_key_grad, at.keys,
         at.kv_heads, grad);
}

Kernel attention_backward(const host::Form& form, const AttentionForm& attention, const Libraries& libraries) {
  const host::HeadLayout& at = attention.at;
  std::vector<std::int64_t> in = {attention.context_size(), at.query_size()}, out = {at.query_size()};
  if (at.apart) in.push_back(at.key_size()), out.push_back(at.key_size());
  in.insert(in.end(), {attention.context_size(), attention.lse_size()});
  if (attention.op.sinks) in.push_back(at.heads), out.push_back(at.heads);
  form.expect(in, out);
  if (const auto plan = by_library(form, attention, libraries)) return backward_by_library(attention, *plan);
  const FlashKernels* flash = flash_kernels(form, attention);
  const bool add_sinks = form.what.accumulate_weights;
  return {.run = [=](const Launcher& on, const Call& call) { run_backward(attention, flash, add_sinks, on, call); },
          .scratch = {4 * attention.lse_size()},
          .varies = attention.drops};
}

}  // namespace

Kernel make_attention(const host::Form& form, const Libraries& libraries) {
  const auto& op = form.as<ops::Attention>();
  const std::vector<std::int64_t>&queries = form.dims(0, 4), &keys = form.dims(1, 4);
  const std::size_t operands = (form.forward() ? form.reads.size() : form.writes.size()) - (op.sinks ? 1 : 0);
  AttentionForm attention{.at = host::head_layout(form, queries[0], queries[1], keys[1], operands == 2),
                          .causal = op.causal,
                          .drops = op.p > 0,
                          .accumulate = form.what.accumulate,
                          .op = op};
  const host::HeadLayout& at = attention.at;
  if (attention.causal && attention.all_queries() != attention.all_keys())
    form.refuse("a causal map that is not square", "as many queries as keys");
  if ((op.window > 0 || op.chunk > 0) && !op.causal) form.refuse("a window or chunks without a causal map", "a causal map");
  if (op.sinks && op.blocks > 1) form.refuse("sinks in a ring of keys", "all keys at once");
  if (std::max(at.dim, at.values()) > 256)
    form.refuse("heads of " + std::to_string(std::max(at.dim, at.values())), "at most 256");
  if (attention.drops) attention.drop = host::drop_rule(form);
  if (form.what.phase == (op.sinks ? Phase::Backward : Phase::InputGrad)) return attention_backward(form, attention, libraries);
  if (!form.forward()) form.refuse("this phase", "forward, recompute or input gradient");
  std::vector<std::int64_t> in = {at.query_size()};
  if (at.apart) in.push_back(at.key_size());
  if (op.sinks) in.push_back(at.heads);
  form.expect(in, {attention.context_size(), attention.lse_size()});
  if (const auto plan = by_library(form, attention, libraries)) return forward_by_library(attention, *plan);
  const FlashKernels* flash = flash_kernels(form, attention);
  return {.run =
              [attention, flash](const Launcher& on, const Call& call) {
                const host::HeadLayout& at = attention.at;
                AttentionArgs args = numbers(attention, call.arguments);
                const Operand& key = call.reads[attention.key()];
                args.q = reads(call.reads[0]), args.k = keys_of(attention, key, false),
                args.v = values_of(attention, key, false);
                if (attention.op.sinks) args.sinks = reads(call.reads[attention.key() + 1]);
                args.context = writes(call.writes[0]), args.lse = writes(call.writes[1]);
                launch(on, attention, flash ? std::optional(flash->forward) : std::nullopt, KernelId::attention_forward,
                       at.queries, at.heads, args);
              },
          .varies = attention.drops};
}

}  // namespace foreshard::gpu
