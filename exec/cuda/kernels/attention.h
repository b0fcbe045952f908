// Attention that does not store its map, for every head size up to 256, all number formats, and dropout. One warp per query; in the
// backward of keys and values one warp per key. Sums have a fixed order, so results are the same in every run. flash.h has the version for
// tensor cores.
//
// Reference: exec/host/host_flash.cpp. Queries [sample, head, query, dim], keys and values [sample, kv head, key, dim], with strides of
// their own; lse and delta [sample, head, query] in fp32. FLOPs per pair of a query and a key that it attends to: forward 4 dim, gradient
// of queries 6 dim, of keys and values 8 dim, because the backward computes the map again. Rows are read from the cache; bound by fp32
// arithmetic. delta reads 4 bytes per element in bf16; bound by memory.
#pragma once

#include "exec/cuda/kernels/words.h"

namespace foreshard::gpu {

constexpr int kMostPerLane = 8;  // elements of a head per lane: 256 / 32

struct HeadRow {  // a query, or a key, of a head of a sample
  std::int64_t sample, head, row;
};
GPU_FUNCTION HeadRow head_row(std::int64_t n, std::int64_t heads, std::int64_t rows) {
  return {n / (heads * rows), n / rows % heads, n % rows};
}
GPU_FUNCTION std::int64_t query_at(const AttentionArgs& a, const HeadRow& q) {
  return q.row * a.query_steps.position + q.sample * a.query_steps.sample + q.head * a.dim;
}
GPU_FUNCTION std::int64_t key_at(const AttentionArgs& a, std::int64_t sample, std::int64_t kv, std::int64_t key) {
  return a.order.row(key) * a.key_steps.position + sample * a.key_steps.sample + kv * a.dim;
}
GPU_FUNCTION std::int64_t context_at(const AttentionArgs& a, const HeadRow& q) {
  return ((q.row * a.samples + q.sample) * a.heads + q.head) * a.dim;
}
GPU_FUNCTION std::int64_t lse_at(const AttentionArgs& a, const HeadRow& q) {
  return (q.sample * a.heads + q.head) * a.queries + q.row;
}
GPU_FUNCTION float dot(const View& x, std::int64_t x_at, const View& y, std::int64_t y_at, std::int64_t dim) {
  float sum = 0;
  for (std::int64_t i = 0; i < dim; ++i) sum += load(x, x_at + i) * load(y, y_at + i);
  return sum;
}
// The number of keys, in the order of their positions, that a query attends to, and the first query that attends to a key.
GPU_FUNCTION std::int64_t seen_keys(const AttentionArgs& a, std::int64_t query) {
  return a.causal ? a.key_positions.below(a.query_positions.at(query) + 1, a.keys) : a.keys;
}
GPU_FUNCTION std::int64_t first_seeing(const AttentionArgs& a, std::int64_t key) {
  return a.causal ? a.query_positions.below(a.key_positions.at(key), a.queries) : 0;
}
// The dropout factor of an element of the map: 0 or 1 / (1 - p); 1 without dropout.
GPU_FUNCTION float drop_factor(const AttentionArgs& a, const HeadRow& q, std::int64_t key) {
  const MapDropout& drop = a.drop;
  if (!drop.drops) return 1.0f;
  const std::int64_t query = a.query_positions.at(q.row);
  const std::int64_t index = ((drop.first_head + q.head) * drop.all_queries + query) * drop.all_keys + a.key_positions.at(key);
  return keeps(drop.seed, stream_of_sample(drop.key, drop.first_sample + q.sample), index, drop.threshold) ? drop.scale : 0.0f;
}

GPU_KERNEL attention_forward(const AttentionArgs a) {
  const std::int64_t n = block() * warps() + warp();
  if (n >= a.samples * a.heads * a.queries) return;
  const HeadRow q = head_row(n, a.heads, a.queries);
  const std::int64_t kv = q.head * a.kv_heads / a.heads, visible = seen_keys(a, q.row), at = query_at(a, q);
  float largest = -INFINITY, sum = 0, out[kMostPerLane] = {};
  for (std::int64_t first = 0; first < visible; first += kWarp) {
    const std::int64_t key = first + lane();
    const bool seen = key < visible;
    const float score = seen ? a.scale * dot(a.q, at, a.k, key_at(a, q.sample, kv, key), a.dim) : -INFINITY;
    const float now = fmaxf(largest, warp_maximum(score)), shrink = expf(largest - now);
    const float e = seen ? expf(score - now) : 0.0f;
    sum = sum * shrink + warp_sum(e);
    largest = now;
    const float weight = seen ? e * drop_factor(a, q, key) : 0.0f;
    for (int j = 0; j < kMostPerLane; ++j) out[j] *= shrink;
    for (int j = 0; j < kWarp && first + j < visible; ++j) {
      const float p = lane_value(weight, j);
      const std::int64_t v = key_at(a, q.sample, kv, first + j);
      for (int i = 0; i < kMostPerLane; ++i)
        if (lane() + i * kWarp < a.dim) out[i] += p * load(a.v, v + lane() + i * kWarp);
    }
  }
  for (int i = 0; i < kMostPerLane; ++i)
    if (lane() + i * kWarp < a.dim) store(a.context, context_at(a, q) + lane() + i * kWarp, visible > 0 ? out[i] / sum : 0.0f);
  if (lane() == 0) store(a.lse, lse_at(a, q), largest + logf(sum));
}

// delta = sum(context dcontext) of a query (Dao et al. 2022, appendix B.2).
GPU_KERNEL attention_delta(const AttentionArgs a) {
  const std::int64_t n = block() * warps() + warp();
  if (n >= a.samples * a.heads * a.queries) return;
  const HeadRow q = head_row(n, a.heads, a.queries);
  float sum = 0;
  for (std::int64_t i = lane(); i < a.dim; i += kWarp)
    sum += load(a.context, context_at(a, q) + i) * load(a.dcontext, context_at(a, q) + i);
  sum = warp_sum(sum);
  if (lane() == 0) store(a.delta, lse_at(a, q), sum);
}

// For one element of the map: the probability after dropout, and the gradient of the score.
struct MapPlace {
  float dropped, dscore;
};
GPU_FUNCTION MapPlace map_place(const AttentionArgs& a, const HeadRow& q, std::int64_t kv, std::int64_t key) {
  const std::int64_t k = key_at(a, q.sample, kv, key), lse = lse_at(a, q);
  const float p = expf(a.scale * dot(a.q, query_at(a, q), a.k, k, a.dim) - load(a.lse, lse));
  const float factor = drop_factor(a, q, key);
  const float dp = dot(a.dcontext, context_at(a, q), a.v, k, a.dim) * factor;
  return {p * factor, a.scale * p * (dp - load(a.delta, lse))};
}

GPU_KERNEL attention_query_grad(const AttentionArgs a) {
  const std::int64_t n = block() * warps() + warp();
  if (n >= a.samples * a.heads * a.queries) return;
  const HeadRow q = head_row(n, a.heads, a.queries);
  const std::int64_t kv = q.head * a.kv_heads / a.heads, visible = seen_keys(a, q.row);
  float dq[kMostPerLane] = {};
  for (std::int64_t first = 0; first < visible; first += kWarp) {
    const std::int64_t key = first + lane();
    const float ds = key < visible ? map_place(a, q, kv, key).dscore : 0.0f;
    for (int j = 0; j < kWarp && first + j < visible; ++j) {
      const float d = lane_value(ds, j);
      const std::int64_t k = key_at(a, q.sample, kv, first + j);
      for (int i = 0; i < kMostPerLane; ++i)
        if (lane() + i * kWarp < a.dim) dq[i] += d * load(a.k, k + lane() + i * kWarp);
    }
  }
  for (int i = 0; i < kMostPerLane; ++i)
    if (lane() + i * kWarp < a.dim) {
      const std::int64_t at = query_at(a, q) + lane() + i * kWarp;
      store(a.dq, at, old_value(a.accumulate, a.dq, at) + dq[i]);
    }
}

GPU_KERNEL attention_key_grad(const AttentionArgs a) {
  const std::int64_t n = block() * warps() + warp();
  if (n >= a.samples * a.kv_heads * a.keys) return;
  const HeadRow own = head_row(n, a.kv_heads, a.keys);  // `head` is a key-value head
  const std::int64_t group = a.heads / a.kv_heads, begin = first_seeing(a, own.row);
  float dk[kMostPerLane] = {}, dv[kMostPerLane] = {};
  for (std::int64_t head = own.head * group; head < (own.head + 1) * group; ++head)
    for (std::int64_t first = begin; first < a.queries; first += kWarp) {
      const HeadRow q = {own.sample, head, first + lane()};
      const MapPlace place = q.row < a.queries ? map_place(a, q, own.head, own.row) : MapPlace{0, 0};
      for (int j = 0; j < kWarp && first + j < a.queries; ++j) {
        const float ds = lane_value(place.dscore, j), p = lane_value(place.dropped, j);
        const HeadRow from = {own.sample, head, first + j};
        for (int i = 0; i < kMostPerLane; ++i)
          if (lane() + i * kWarp < a.dim) {
            dk[i] += ds * load(a.q, query_at(a, from) + lane() + i * kWarp);
            dv[i] += p * load(a.dcontext, context_at(a, from) + lane() + i * kWarp);
          }
      }
    }
  for (int i = 0; i < kMostPerLane; ++i)
    if (lane() + i * kWarp < a.dim) {
      const std::int64_t at = key_at(a, own.sample, own.head, own.row) + lane() + i * kWarp;
      store(a.dk, at, old_value(a.accumulate, a.dk, at) + dk[i]);
      store(a.dv, at, old_value(a.accumulate, a.dv, at) + dv[i]);
    }
}

}  // namespace foreshard::gpu
