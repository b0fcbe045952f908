// Memory traffic of the kernels beside the products of low-rank adapters, and the traffic that frozen 8-bit weights save or add
// (docs/cost-model.md, "Adapters").
#pragma once

#include "core/cluster/cluster.h"
#include "core/plan/plan.h"
#include "strategy/cost/framework_preset.h"

namespace foreshard {

// Rank of the plan's adapters: the smallest side of its trained matrices, if other tensors are frozen. 0: no adapters.
std::int64_t adapter_rank(const Plan& plan);

// Bytes that separate kernels move in addition to the product x A^T [m, rank] or z B^T [m, n] of an adapter: the framework's passes over
// its input and its result (AdapterPasses). 0 for other operators and for weight gradients.
Bytes adapter_bytes(const FrameworkPreset& preset, std::int64_t rank, const Compute& what);

// Bytes that an 8-bit product with frozen weights moves, less those with trained weights (may be negative). Its input is not transposed for
// a weight gradient; its backward transposes the weights if the framework keeps no transposed copy and the GPU multiplies 8-bit operands in
// one layout only.
Bytes frozen_bytes(const FrameworkPreset& preset, std::int64_t rank, const Compute& what, const Gpu& gpu);

}  // namespace foreshard
