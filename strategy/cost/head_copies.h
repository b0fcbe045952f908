// Copies between attention and the products around it: of Megatron core before it (docs/cost-model.md, `copies_heads`), of nanotron behind
// it (`copies_samples`).
#pragma once

#include "core/plan/plan.h"
#include "strategy/cost/framework_preset.h"

namespace foreshard {

// Time of the copies around a rotation of queries and keys. Forward: queries that share keys lie apart in the result of the product, by
// groups with their key and value, and are copied to lie side by side, by a kernel without vector loads. Backward: the gradients of
// queries, keys and values are joined. 0 for other computes and where queries and keys are rotated apart (latent attention).
Seconds copied_heads(const Gpu& gpu, const FrameworkPreset& preset, const Compute& what);

// Time of the copies of an attention's result that put samples behind tokens, for the product that reads it: one in the forward, two in the
// backward, by kernels without vector loads. 0 for one sample and other computes.
Seconds copied_samples(const Gpu& gpu, const FrameworkPreset& preset, const Compute& what);

}  // namespace foreshard
