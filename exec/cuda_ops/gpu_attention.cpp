// Fused attention: by cuDNN if it supports the form, else by our kernels: on tensor cores for bf16 and head size 64 or 128, else with one
// warp per row.
#include <array>
#include <cmath>
#include <cstring>

#include "exec/base/philox.h"
#include "exec/cuda_ops/gpu_kernel.h"
#include "exec/host/host_dropout.h"
#include "exec/host/host_heads.h"

namespace foreshard::gpu {

namespace {

constexpr std::int64_t kMostBlocksY = 65535;

struct AttentionForm {
  host::HeadLayout at = {};
  bool causal = false, drops = false, flash = false, accumulate = false;
  host::DropRule drop = {};
  ops::Attention op = {};

  std::int64_t all_queries() const { return at.queries * op.split.parts(); }  // of the whole sequence
  std::int64_t all_keys() const { return at.keys * op.blocks; }

  std::int64_t context_size() const { return at.samples * at.queries * at.heads * at.dim; }
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
  args.heads = at.heads, args.kv_heads = at.kv_heads, args.dim = at.dim;
  args.query_steps = {.position = at.query_stride(), .sample = at.query_width()};
  args.key_steps = {.position = at.key_stride(), .sample = at.key_width()};
  args.scale = static_cast<float>(1 / std::sqrt(static_cast<double>(at.dim)));
  args.causal = form.causal, args.accumulate = form.accumulate;
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
  args.query_positions = positions_of(split.rows_of(given.cp_rank, at.queries));
  if (form.op.blocks > 1)
    args.key_positions = positions_of(split.rows_of((given.cp_rank - form.op.block + split.ranks) % split.ranks, at.keys));
  else
    args.order = gathered_order(split, at.keys / split.parts());
  return args;
}

// Whether the kernels for tensor cores (kernels/flash.h) can run it.
bool is_flash(const host::Form& form, const AttentionForm& attention) {
  const host::HeadLayout& at = attention.at;
  if (attention.drops || (at.dim != 64 && at.dim != 128) || at.samples * at.heads > kMostBlocksY) return false;
  for (const auto& operands : {form.reads, form.writes})
    for (const Operand& operand : operands) {
      const bool lse = operand.dtype == DType::F32 && operand.elements >= attention.lse_size() &&
                       operand.elements < attention.context_size();
      if (!lse && operand.dtype != DType::BF16) return false;
    }
  return true;
}

// cuDNN is used for 16-bit numbers, gradients that are not accumulated, and attention that is not causal or whose keys lie in the order of
// their positions (so not for a causal model whose positions are split over context-parallel ranks). cuDNN makes its own dropout masks.
// They differ from those of the host and of our kernels, and depend on how heads and samples are split over ranks.
AttentionCall library_call(const AttentionForm& form, DType dtype, bool backward) {
  const host::HeadLayout& at = form.at;
  AttentionCall call = {
      .samples = at.samples, .heads = at.heads, .kv_heads = at.kv_heads, .queries = at.queries, .keys = at.keys};
  call.dim = at.dim, call.dtype = dtype, call.causal = form.causal, call.backward = backward;
  call.scale = static_cast<float>(1 / std::sqrt(static_cast<double>(at.dim)));
  if (form.drops) call.dropped = static_cast<float>(form.op.p);
  call.q = call.dq = {nullptr, at.query_width(), at.dim, at.query_stride()};
  call.k = call.v = call.dk = call.dv = {nullptr, at.key_width(), at.dim, at.key_stride()};
  call.context = call.dcontext = {nullptr, at.heads * at.dim, at.dim, at.context_stride()};
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
  const bool backward = form.what.phase == Phase::InputGrad;
  if ((dtype != DType::BF16 && dtype != DType::F16) || (backward && attention.accumulate)) return {};
  if (attention.causal && attention.op.split.parts() > 1) return {};
  for (const auto& operands : {form.reads, form.writes})
    for (const Operand& operand : operands) {
      const bool lse = operand.dtype == DType::F32 && operand.elements >= attention.lse_size() &&
                       operand.elements < attention.context_size();
      if (!lse && operand.dtype != dtype) return {};
      if (!on_pack_border(reads(operand))) return {};
    }
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
    const Operand& key = call.reads[attention.at.apart ? 1 : 0];
    now.q.data = call.reads[0].data;
    now.k.data = static_cast<std::byte*>(keys_of(attention, key, false).data);
    now.v.data = static_cast<std::byte*>(values_of(attention, key, false).data);
    now.context.data = call.writes[0].data, now.lse = call.writes[1].data;
  });
}

Kernel backward_by_library(const AttentionForm& attention, const LibraryPlan& plan) {
  return library_kernel(attention, plan, [attention](AttentionCall& now, const Call& call) {
    const std::size_t key = attention.at.apart ? 1 : 0;
    now.dcontext.data = call.reads[0].data, now.q.data = call.reads[1].data;
    now.k.data = static_cast<std::byte*>(keys_of(attention, call.reads[1 + key], false).data);
    now.v.data = static_cast<std::byte*>(values_of(attention, call.reads[1 + key], false).data);
    now.context.data = call.reads[2 + key].data, now.lse = call.reads[3 + key].data;
    now.dq.data = call.writes[0].data;
    now.dk.data = static_cast<std::byte*>(keys_of(attention, call.writes[key], true).data);
    now.dv.data = static_cast<std::byte*>(values_of(attention, call.writes[key], true).data);
  });
}

void launch(const Launcher& on, const AttentionForm& form, KernelId tall, KernelId wide, KernelId plain, std::int64_t rows,
            std::int64_t heads, const AttentionArgs& args) {
  const std::int64_t batches = form.at.samples * heads;
  if (form.flash) return on.launch(form.at.dim == 64 ? tall : wide, ceil_div(rows, 64), batches, 128, args);
  on.rows(plain, batches * rows, args);
}

Kernel attention_backward(const host::Form& form, const AttentionForm& attention, const Libraries& libraries) {
  const host::HeadLayout& at = attention.at;
  std::vector<std::int64_t> in = {attention.context_size(), at.query_size()}, out = {at.query_size()};
  if (at.apart) in.push_back(at.key_size()), out.push_back(at.key_size());
  in.insert(in.end(), {attention.context_size(), attention.lse_size()});
  form.expect(in, out);
  if (const auto plan = by_library(form, attention, libraries)) return backward_by_library(attention, *plan);
  return {.run =
              [attention](const Launcher& on, const Call& call) {
                const host::HeadLayout& at = attention.at;
                const std::size_t key = at.apart ? 1 : 0;
                AttentionArgs delta = numbers(attention, call.arguments), grad = delta;
                delta.context = reads(call.reads[2 + key]), delta.dcontext = reads(call.reads[0]);
                delta.delta = scratch_array(call.scratch, attention.lse_size(), Type::F32);
                on.rows(KernelId::attention_delta, attention.lse_size(), delta);
                grad.dcontext = delta.dcontext, grad.delta = delta.delta, grad.delta.writes = false;
                grad.q = reads(call.reads[1]), grad.lse = reads(call.reads[3 + key]);
                grad.k = keys_of(attention, call.reads[1 + key], false),
                grad.v = values_of(attention, call.reads[1 + key], false);
                AttentionArgs query = grad;
                query.dq = writes(call.writes[0]);
                launch(on, attention, KernelId::flash_query_grad_64, KernelId::flash_query_grad_128,
                       KernelId::attention_query_grad, at.queries, at.heads, query);
                grad.dk = keys_of(attention, call.writes[key], true), grad.dv = values_of(attention, call.writes[key], true);
                launch(on, attention, KernelId::flash_key_grad_64, KernelId::flash_key_grad_128, KernelId::attention_key_grad,
                       at.keys, at.kv_heads, grad);
              },
          .scratch = {4 * attention.lse_size()},
          .varies = attention.drops};
}

}  // namespace

Kernel make_attention(const host::Form& form, const Libraries& libraries) {
  const auto& op = form.as<ops::Attention>();
  if (op.scale > 0 || op.score_cap > 0 || op.window > 0 || op.chunk > 0 || op.sinks || op.value_dim > 0)
    form.refuse("\"" + settings_text(form.what.op) + "\"",
                "attention without window, chunks, sinks, caps, a scale or a value size of its own; the host has these");
  const std::vector<std::int64_t>&queries = form.dims(0, 4), &keys = form.dims(1, 4);
  const std::size_t operands = form.forward() ? form.reads.size() : form.writes.size();
  AttentionForm attention{.at = host::head_layout(form, queries[0], queries[1], keys[1], operands == 2),
                          .causal = form.as<ops::Attention>().causal,
                          .drops = form.as<ops::Attention>().p > 0,
                          .accumulate = form.what.accumulate,
                          .op = form.as<ops::Attention>()};
  const host::HeadLayout& at = attention.at;
  if (attention.causal && attention.all_queries() != attention.all_keys())
    form.refuse("a causal map that is not square", "as many queries as keys");
  if (at.dim > 256) form.refuse("heads of " + std::to_string(at.dim), "at most 256");
  if (attention.drops) attention.drop = host::drop_rule(form);
  attention.flash = is_flash(form, attention);
  if (form.what.phase == Phase::InputGrad) return attention_backward(form, attention, libraries);
  if (!form.forward()) form.refuse("this phase", "forward, recompute or input gradient");
  form.expect(at.apart ? std::vector{at.query_size(), at.key_size()} : std::vector{at.query_size()},
              {attention.context_size(), attention.lse_size()});
  if (const auto plan = by_library(form, attention, libraries)) return forward_by_library(attention, *plan);
  return {.run =
              [attention](const Launcher& on, const Call& call) {
                const host::HeadLayout& at = attention.at;
                AttentionArgs args = numbers(attention, call.arguments);
                const Operand& key = call.reads[at.apart ? 1 : 0];
                args.q = reads(call.reads[0]), args.k = keys_of(attention, key, false),
                args.v = values_of(attention, key, false);
                args.context = writes(call.writes[0]), args.lse = writes(call.writes[1]);
                launch(on, attention, KernelId::flash_forward_64, KernelId::flash_forward_128, KernelId::attention_forward,
                       at.queries, at.heads, args);
              },
          .varies = attention.drops};
}

}  // namespace foreshard::gpu
