// Makers for the operators of context parallelism: MergeAttention and HeadParts.
#include "exec/cuda_ops/gpu_kernel.h"

namespace foreshard::gpu {

Kernel make_merge_attention(const host::Form& form) {
  if (!form.forward()) form.refuse("this phase", "forward or recompute");
  const auto& dims = form.dims(0, 4);
  const std::int64_t rows = dims[0] * dims[1] * dims[2], size = rows * dims[3];
  form.expect({size, rows, size, rows}, {size, rows});
  return {.run = [dims, rows](const Launcher& on, const Call& call) {
    MergeArgs args = {.context = reads(call.reads[0]), .lse = reads(call.reads[1]), .other = reads(call.reads[2])};
    args.other_lse = reads(call.reads[3]), args.merged = writes(call.writes[0]), args.merged_lse = writes(call.writes[1]);
    args.samples = dims[0], args.queries = dims[1], args.heads = dims[2], args.dim = dims[3];
    on.rows(KernelId::merge_attention, rows, args);
  }};
}

Kernel make_head_parts(const host::Form& form) {
  const auto& op = form.as<ops::HeadParts>();
  const std::int64_t size = host::size_of_dims(form.dims(0)), width = (op.heads + 2 * op.kv_heads) * op.dim;
  if (op.parts < 1 || width < 1 || op.heads % op.parts != 0 || op.kv_heads % op.parts != 0 || size % width != 0)
    form.refuse("\"" + settings_text(form.what.op) + "\"", "rows of heads that the parts divide");
  if (form.what.phase != Phase::InputGrad && !form.forward()) form.refuse("this phase", "forward, recompute or input gradient");
  form.expect({size}, {size});
  HeadPartsArgs args = {.rows = size / width, .heads = op.heads, .kv_heads = op.kv_heads, .dim = op.dim, .parts = op.parts};
  args.join = op.join != (form.what.phase == Phase::InputGrad), args.accumulate = form.what.accumulate;
  return {.run = [args, size](const Launcher& on, const Call& call) {
    HeadPartsArgs now = args;
    now.x = reads(call.reads[0]), now.y = writes(call.writes[0]);
    on.elements(KernelId::split_heads, size, now);
  }};
}

}  // namespace foreshard::gpu
