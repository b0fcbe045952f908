// Memory traffic of the kernels beside the products of low-rank adapters, and what frozen weights in 8 bits save and cost
// (docs/cost-model.md, "Adapters").
#pragma once

#include "core/cluster/cluster.h"
#include "core/plan/plan.h"
#include "strategy/cost/framework_preset.h"

namespace foreshard {

// Rank of the plan's adapters: the smaller side of its trained matrices, when others are frozen. 0: no adapters.
std::int64_t adapter_rank(const Plan& plan);

// Bytes that separate kernels read and write beside the product x A^T [m, rank] or z B^T [m, n] of an adapter: the framework's passes over
// its input and its result (AdapterPasses). 0: another operator.
Bytes adapter_bytes(const FrameworkPreset& preset, std::int64_t rank, const Compute& what);

// Bytes that a product of frozen weights in 8 bits moves more than one of trained weights; negative: fewer. Its input is not transposed for a
// gradient of weights; its backward transposes the weights where the framework keeps no transposed copy and the GPU multiplies in one layout only.
Bytes frozen_bytes(const FrameworkPreset& preset, std::int64_t rank, const Compute& what, const Gpu& gpu);

}  // namespace foreshard
