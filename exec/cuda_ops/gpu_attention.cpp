// Fused attention: by cuDNN if it supports the form, else by our kernels: on tensor cores for bf16 and the head sizes of kernels/flash.h,
// else with one warp per row.
#include "exec/base/philox.h"
#include "exec/cuda_ops/attention_form.h"

namespace foreshard::gpu {

namespace {

constexpr std::int64_t kMostBlocksY = 65535, kMostFlashRows = std::int64_t{1} << 30;

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
  const LibraryPlan plan = by_library(form, attention, libraries);
  if (plan.refusal.empty()) return library_kernel(form, attention, plan);
  const FlashKernels* flash = flash_kernels(form, attention);
  const bool add_sinks = form.what.accumulate_weights;
  return {.run = [=](const Launcher& on, const Call& call) { run_backward(attention, flash, add_sinks, on, call); },
          .scratch = {4 * attention.lse_size()},
          .varies = attention.drops,
          .own_attention = plan.refusal};
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
  const LibraryPlan plan = by_library(form, attention, libraries);
  if (plan.refusal.empty()) return library_kernel(form, attention, plan);
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
          .varies = attention.drops,
          .own_attention = plan.refusal};
}

}  // namespace foreshard::gpu
