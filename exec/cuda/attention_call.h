// The arguments of a fused attention of cuDNN, as plain values. exec/cuda/module/cudnn_attention.cpp passes them to cuDNN; the fake runtime
// of the tests computes the same on the CPU.
#pragma once

#include <cstddef>
#include <cstdint>

#include "core/plan/plan.h"

namespace foreshard::gpu {

// Element (sample, head, position, i) is at index sample * sample_step + head * head_step + position * row_step + i from `data`.
struct AttentionArray {
  std::byte* data = nullptr;
  std::int64_t sample_step = 0, head_step = 0, row_step = 0;
  bool operator==(const AttentionArray&) const = default;
};

// context = softmax(scale q k^T) v. Query head h attends to key head h kv_heads / heads. `causal`: the query at position p attends to keys
// 0 to p; with a `window` only to the last `window` of them. lse [sample, head, query], fp32, is the logarithm of the sum of e^(scale q k)
// over the keys. The forward reads q, k, v and writes context and lse. The backward reads these five and dcontext and writes dq, dk, dv,
// with the same bits in every run unless `any_order`. Dropout: each entry of the softmax becomes 0 with probability `dropped`, else it is
// multiplied by 1 / (1 - dropped). The library makes the random numbers from `random`, two int64 in GPU memory: a seed and an offset. With
// equal seed and offset, forward and backward drop the same entries.
struct AttentionCall {
  std::int64_t samples = 1, heads = 1, kv_heads = 1, queries = 0, keys = 0;
  std::int64_t dim = 0, value_dim = 0;  // elements of a query and key head, and of a value head
  std::int64_t window = 0;              // 0: none
  DType dtype = DType::BF16;            // number format of all arrays but lse
  float scale = 1;
  bool causal = false, backward = false;
  bool any_order = false;       // the backward may add up in any order: faster, but with other bits in every run
  float dropped = 0;            // dropout probability, below 1
  std::byte* random = nullptr;  // null without dropout
  AttentionArray q = {}, k = {}, v = {}, context = {}, dcontext = {}, dq = {}, dk = {}, dv = {};
  std::byte* lse = nullptr;
  bool operator==(const AttentionCall&) const = default;
};

}  // namespace foreshard::gpu
