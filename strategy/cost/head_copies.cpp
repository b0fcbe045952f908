#include "strategy/cost/head_copies.h"

#include "strategy/cost/operator_style.h"
#include "strategy/kernels/op_cost.h"

namespace foreshard {

// Megatron-LM core_v0.15.3 megatron/core/transformer/attention.py, SelfAttention.get_query_key_value_tensors (`query.reshape`);
// Transformer Engine v2.9 pytorch/utils.py, SplitAlongDim.backward (`torch.cat`). The operator itself reads and writes the values too:
// Megatron leaves these alone in the rotation, but joins their gradients.
Seconds copied_heads(const Gpu& gpu, const FrameworkPreset& preset, const Compute& what) {
  const auto* rope = std::get_if<ops::Rope>(&what.op);
  if (!preset.styles.copies_heads || !rope || rope->heads == 0 || rope->kv_heads == 0) return {};
  const std::vector<std::int64_t>& dims = what.shapes.front().dims;
  const Bytes head = 2 * size_of(what.shapes.front().dtype) * (dims[0] * dims[1] * rope->dim);  // read and written
  const bool backward = what.phase == Phase::InputGrad || what.phase == Phase::Backward;
  if (backward) return streamed_time(gpu, head * (rope->heads + rope->kv_heads)) * joining_slowdown(gpu, preset.styles.joins);
  const bool in_groups = rope->kv_heads > 1 && rope->heads > rope->kv_heads;
  const double result = 2.0 * static_cast<double>(size_of(what.shapes.front().dtype).value);
  return in_groups ? streamed_time(gpu, head * rope->heads) * unvectorized_slowdown(gpu, result) : Seconds{};
}

// huggingface/nanotron 67c5ebb src/nanotron/models/llama.py, CausalSelfAttention.forward: the result is transposed, and o_proj makes it
// contiguous; in the backward again for the gradient of the weights, and the gradient for that of the attention.
Seconds copied_samples(const Gpu& gpu, const FrameworkPreset& preset, const Compute& what) {
  if (!preset.styles.copies_samples || !is<ops::Attention>(what.op)) return {};
  const std::vector<std::int64_t>& dims = what.shapes.front().dims;  // samples, tokens, heads, head size
  if (dims[0] == 1) return {};
  const bool backward = what.phase == Phase::InputGrad || what.phase == Phase::Backward;
  const Bytes result = 2 * size_of(what.shapes.front().dtype);
  const Seconds copy = streamed_time(gpu, result * (dims[0] * dims[1] * dims[2] * dims[3]));
  return copy * (unvectorized_slowdown(gpu, static_cast<double>(result.value)) * (backward ? 2 : 1));
}

}  // namespace foreshard
