// Softmax of rows: with packs if rows allow it, else one warp per row, element by element.
// Reference: exec/host/host_attention.cpp.
#pragma once

#include "exec/cuda/kernels/register_row.h"

namespace foreshard::gpu {

// y = softmax(scale x) over the columns that the causal mask allows, 0 elsewhere. Reads 2 bytes and writes 2 per element in bf16; bound by
// memory.
template <Type type>
GPU_FUNCTION void softmax_forward_packs(const SoftmaxArgs& a, GPU_SHARED_VIEW(float, kMostWarps) parts) {
  constexpr int n = kPack<type>;
  const RegisterRow<type> row(a.rows, a.columns, a.warps_of_row);
  const int columns = static_cast<int>(a.columns), visible = a.causal ? row.number() % columns + 1 : columns;
  Quad32 held[kHeldPacks];
  float x[n], largest = -INFINITY, sum = 0;
  each_pack(row, [&](int k) {
    held[k] = load_quad<type>(a.x, row.at(k));
    unpack<type>(held[k], x);
    GPU_UNROLL
    for (int j = 0; j < n; ++j) largest = row.column(k) + j < visible ? fmaxf(largest, x[j]) : largest;
  });
  largest = row_fold(largest, true, a.warps_of_row, parts);
  each_pack(row, [&](int k) {
    unpack<type>(held[k], x);
    GPU_UNROLL
    for (int j = 0; j < n; ++j) sum += row.column(k) + j < visible ? quick_exp(a.scale * (x[j] - largest)) : 0.0f;
  });
  const float inverse = 1.0f / row_fold(sum, false, a.warps_of_row, parts);
  each_pack(row, [&](int k) {
    unpack<type>(held[k], x);
    GPU_UNROLL
    for (int j = 0; j < n; ++j) x[j] = row.column(k) + j < visible ? quick_exp(a.scale * (x[j] - largest)) * inverse : 0.0f;
    store_pack<type>(a.y, row.at(k), x);
  });
}

// y (+)= scale p (dp - sum(p dp)). Reads 4 bytes and writes 2 per element in bf16; bound by memory.
template <Type type>
GPU_FUNCTION void softmax_backward_packs(const SoftmaxArgs& a, GPU_SHARED_VIEW(float, kMostWarps) parts) {
  constexpr int n = kPack<type>;
  const RegisterRow<type> row(a.rows, a.columns, a.warps_of_row);
  Quad32 held[kHeldPacks], held_dp[kHeldPacks];
  float p[n], dp[n], sum = 0;
  each_pack(row, [&](int k) {
    held[k] = load_quad<type>(a.x, row.at(k)), held_dp[k] = load_quad<type>(a.dp, row.at(k));
    unpack<type>(held[k], p), unpack<type>(held_dp[k], dp);
    GPU_UNROLL
    for (int j = 0; j < n; ++j) sum += p[j] * dp[j];
  });
  sum = row_fold(sum, false, a.warps_of_row, parts);
  each_pack(row, [&](int k) {
    float old[n];
    GPU_UNROLL
    for (int j = 0; j < n; ++j) old[j] = 0;
    unpack<type>(held[k], p), unpack<type>(held_dp[k], dp);
    if (a.accumulate) load_pack<type>(a.y, row.at(k), old);
    GPU_UNROLL
    for (int j = 0; j < n; ++j) old[j] += a.scale * p[j] * (dp[j] - sum);
    store_pack<type>(a.y, row.at(k), old);
  });
}

GPU_KERNEL softmax_forward(const SoftmaxArgs a) {
  GPU_SHARED(float, parts, kMostWarps);
  if (a.warps_of_row > 0) {
    RUN_BODY(a.x.type, softmax_forward_packs, a, parts);
    return;
  }
  const std::int64_t row = block() * warps() + warp(), at = row * a.columns;
  if (row >= a.rows) return;
  const std::int64_t visible = a.causal ? a.positions.at(row % a.queries) + 1 : a.columns;  // in the order of positions
  float largest = -INFINITY, sum = 0;
  for (std::int64_t c = lane(); c < visible; c += kWarp) largest = fmaxf(largest, load(a.x, at + a.order.row(c)));
  largest = warp_maximum(largest);
  for (std::int64_t c = lane(); c < visible; c += kWarp) sum += expf(a.scale * (load(a.x, at + a.order.row(c)) - largest));
  const float inverse = 1.0f / warp_sum(sum);
  for (std::int64_t c = lane(); c < a.columns; c += kWarp) {
    const std::int64_t to = at + a.order.row(c);
    store(a.y, to, c < visible ? expf(a.scale * (load(a.x, to) - largest)) * inverse : 0.0f);
  }
}

GPU_KERNEL softmax_backward(const SoftmaxArgs a) {
  GPU_SHARED(float, parts, kMostWarps);
  if (a.warps_of_row > 0) {
    RUN_BODY(a.x.type, softmax_backward_packs, a, parts);
    return;
  }
  const std::int64_t row = block() * warps() + warp(), at = row * a.columns;
  if (row >= a.rows) return;
  float sum = 0;
  for (std::int64_t c = lane(); c < a.columns; c += kWarp) sum += load(a.x, at + c) * load(a.dp, at + c);
  sum = warp_sum(sum);
  for (std::int64_t c = lane(); c < a.columns; c += kWarp)
    store(a.y, at + c, old_value(a.accumulate, a.y, at + c) + a.scale * load(a.x, at + c) * (load(a.dp, at + c) - sum));
}

}  // namespace foreshard::gpu
