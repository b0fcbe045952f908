// Time of a flash attention by its shape and the GPU's datasheet. docs/cost-model.md, "Flash attention", has the formula with its sources.
#pragma once

#include <cstdint>

#include "core/base/dtype.h"
#include "core/base/units.h"
#include "core/cluster/cluster.h"
#include "core/plan/plan.h"
#include "strategy/kernels/op_cost.h"

namespace foreshard {

// One pass of an attention: queries [batch, queries, heads, dim], keys [batch, keys, kv_heads, dim], values of `values` elements.
struct AttentionWork {
  std::int64_t batch = 1, queries = 0, keys = 0, heads = 1, kv_heads = 1, dim = 0, values = 0;
  bool causal = false, backward = false;
  std::int64_t window = 0, chunk = 0;  // as ops::Attention; 0: none
  double pairs = 0;                    // scores of the full square, whatever the mask; 0: as the sizes say
  DType type = DType::BF16;
};
AttentionWork attention_work(const Compute& compute, const ops::Attention& op);

// The kernel is one of the GPU's own generation (FlashBlocks), whose times were measured.
bool is_own_kernel(const Gpu& gpu, FlashKernel flash);

// Arithmetic, in training; of an own kernel with `is_short` that of a short run, before the power limit acts.
Seconds attention_time(const Gpu& gpu, const AttentionWork& work, FlashKernel flash, bool is_short = false);

// What a backward runs beside its kernel: gradients of queries are added up in fp32, so one kernel clears the sums and one converts them. Zero:
// a forward, or an older kernel, whose share of the peak (MachineConstants) is that of all three.
Seconds attention_passes(const Gpu& gpu, const AttentionWork& work, FlashKernel flash);

// A short run of the newest kernel with its operands and results in device memory; without the launch and the passes beside it.
Seconds attention_formula(const Gpu& gpu, const AttentionWork& work);

}  // namespace foreshard
