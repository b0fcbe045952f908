// Attention by cuDNN, where it has the form. It is used for 16-bit numbers, gradients that are not accumulated, and attention that is not
// causal or whose keys lie in the order of their positions (so not for a causal model whose positions are split over context-parallel ranks);
// without chunks, sinks and caps. cuDNN makes its own dropout masks. They differ from those of the host and of our kernels, and depend on how
// heads and samples are split over ranks.
#include <algorithm>
#include <array>
#include <cstring>

#include "core/base/count_text.h"
#include "core/plan/attention_memory.h"
#include "exec/base/philox.h"
#include "exec/cuda_ops/attention_form.h"

namespace foreshard::gpu {

namespace {

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
// What this instruction shows of why the library cannot be used; empty: nothing.
std::string own_because(const host::Form& form, const AttentionForm& attention, const Libraries& libraries) {
  if (!libraries.runtime) return "no library was to be used";
  const DType dtype = form.reads.empty() ? DType::F32 : form.reads[0].dtype;
  if (dtype != DType::BF16 && dtype != DType::F16) return std::string("numbers are in ") + name_of(dtype);
  if (std::string beyond = beyond_library(attention.op); !beyond.empty()) return "cuDNN has no " + beyond;
  if (!form.forward() && attention.accumulate) return "its gradient is added to another";
  for (const Operand& operand : head_rows(form, attention)) {
    if (operand.dtype != dtype) return std::string("numbers are in ") + name_of(dtype) + " and " + name_of(operand.dtype);
    if (!on_pack_border(reads(operand))) return "an array does not begin at a multiple of 16 bytes";
  }
  return "";
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
Kernel kernel_of(const AttentionForm& form, const LibraryPlan& plan, Put put) {
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
  return kernel_of(attention, plan, [attention](AttentionCall& now, const Call& call) {
    const Operand& key = call.reads[attention.key()];
    now.q.data = call.reads[0].data;
    now.k.data = static_cast<std::byte*>(keys_of(attention, key, false).data);
    now.v.data = static_cast<std::byte*>(values_of(attention, key, false).data);
    now.context.data = call.writes[0].data, now.lse = call.writes[1].data;
  });
}

Kernel backward_by_library(const AttentionForm& attention, const LibraryPlan& plan) {
  return kernel_of(attention, plan, [attention](AttentionCall& now, const Call& call) {
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

}  // namespace

LibraryPlan by_library(const host::Form& form, const AttentionForm& attention, const Libraries& libraries) {
  LibraryPlan plan{.refusal = own_because(form, attention, libraries)};
  if (!plan.refusal.empty()) return plan;
  for (const bool backward : {false, true}) {
    AttentionCall call = library_call(attention, form.reads[0].dtype, backward);
    call.any_order = backward && libraries.any_order;
    const std::optional<Bytes> workspace = libraries.runtime->attention_workspace(call);
    if (!workspace) return {.refusal = libraries.runtime->attention_refusal(call)};
    if (libraries.attention_limit && *workspace > *libraries.attention_limit)
      return {.refusal = "cuDNN would need " + in_size(*workspace) + " of workspace, more than " +
                         in_size(*libraries.attention_limit) + (call.any_order || !backward ? "" : "; less with --any-order")};
    if (backward != form.forward()) plan.call = call, plan.workspace = *workspace;
  }
  return plan;
}

Kernel library_kernel(const host::Form& form, const AttentionForm& attention, const LibraryPlan& plan) {
  return form.forward() ? forward_by_library(attention, plan) : backward_by_library(attention, plan);
}

}  // namespace foreshard::gpu
