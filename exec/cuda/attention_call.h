// Attention by the library of the GPU's maker, as plain values: what exec/cuda/module/cudnn_attention.cpp tells cuDNN, and what the fake runtime of the
// tests computes.
#pragma once

#include <cstddef>
#include <cstdint>

#include "core/plan/plan.h"

namespace foreshard::gpu {

// Element (sample, head, position, i) lies at sample * sample_step + head * head_step + position * row_step + i, in elements.
struct AttentionArray {
  std::byte* data = nullptr;
  std::int64_t sample_step = 0, head_step = 0, row_step = 0;
  bool operator==(const AttentionArray&) const = default;
};

// context = softmax(scale q k^T) v; query head h attends to the key head h kv_heads / heads. Causal: position p sees keys 0 to p.
// lse, in fp32, [sample, head, query]: log of the sum of e^(scale q k). Forward: reads q, k, v, writes context, lse. Backward: reads those and dcontext,
// writes dq, dk, dv.
// Dropout: each entry of the softmax is 0 with probability `dropped`, else multiplied by 1 / (1 - dropped). The library draws the entries from
// `random`, two int64 in the memory of the GPU: a seed and an offset. Equal numbers give the forward and the backward the same entries.
struct AttentionCall {
  std::int64_t samples = 1, heads = 1, kv_heads = 1, queries = 0, keys = 0, dim = 0;
  DType dtype = DType::BF16;  // of all arrays but lse
  float scale = 1;
  bool causal = false, backward = false;
  bool any_order = false;       // the backward may add up in any order: faster, with other bits in every run
  float dropped = 0;            // probability, below 1
  std::byte* random = nullptr;  // null without dropout
  AttentionArray q = {}, k = {}, v = {}, context = {}, dcontext = {}, dq = {}, dk = {}, dv = {};
  std::byte* lse = nullptr;
  bool operator==(const AttentionCall&) const = default;
};

}  // namespace foreshard::gpu
