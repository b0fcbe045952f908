// Attention that does not store its map, for every head size up to 256, all number formats, masks and dropout. One warp per query; in the
// backward of keys and values one warp per key. Sums have a fixed order, so results are the same in every run. flash.h has the version for
// tensor cores.
//
// Reference: exec/host/host_flash.cpp. Queries [sample, head, query, dim], keys and values [sample, kv head, key, dim], with strides of
// their own; lse and delta [sample, head, query] in fp32. FLOPs per pair of a query and a key that it attends to: forward 4 dim, gradient
// of queries 6 dim, of keys and values 8 dim, because the backward computes the map again. Rows are read from the cache; bound by fp32
// arithmetic. delta reads 4 bytes per element in bf16; bound by memory.
#pragma once

#include "exec/cuda/attention_args.h"
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
  return a.mask.order.row(key) * a.key_steps.position + sample * a.key_steps.sample + kv * a.dim;
}
GPU_FUNCTION std::int64_t value_at(const AttentionArgs& a, std::int64_t sample, std::int64_t kv, std::int64_t key) {
  return a.mask.order.row(key) * a.key_steps.position + sample * a.key_steps.sample + kv * a.value_dim;
}
GPU_FUNCTION std::int64_t context_at(const AttentionArgs& a, const HeadRow& q) {
  return ((q.row * a.samples + q.sample) * a.heads + q.head) * a.value_dim;
}
GPU_FUNCTION std::int64_t lse_at(const AttentionArgs& a, const HeadRow& q) {
  return (q.sample * a.heads + q.head) * a.queries + q.row;
}
GPU_FUNCTION float dot(const View& x, std::int64_t x_at, const View& y, std::int64_t y_at, std::int64_t dim) {
  float sum = 0;
  for (std::int64_t i = 0; i < dim; ++i) sum += load(x, x_at + i) * load(y, y_at + i);
  return sum;
}
// The keys that a query attends to, numbered by position, or the queries that attend to a key: [begin, end).
struct Seen {
  std::int64_t begin, end;
};
GPU_FUNCTION Seen seen_keys(const AttentionArgs& a, std::int64_t query) {
  if (!a.mask.causal) return {0, a.keys};
  const std::int64_t at = a.mask.query_positions.at(query);
  const std::int64_t first = a.mask.chunk > 0    ? at / a.mask.chunk * a.mask.chunk
                             : a.mask.window > 0 ? at - a.mask.window + 1
                                                 : 0;
  return {first > 0 ? a.mask.key_positions.below(first, a.keys) : 0, a.mask.key_positions.below(at + 1, a.keys)};
}
GPU_FUNCTION Seen seeing_queries(const AttentionArgs& a, std::int64_t key) {
  if (!a.mask.causal) return {0, a.queries};
  const std::int64_t at = a.mask.key_positions.at(key), begin = a.mask.query_positions.below(at, a.queries);
  if (a.mask.chunk == 0 && a.mask.window == 0) return {begin, a.queries};
  return {begin, a.mask.query_positions.below(a.mask.chunk > 0 ? (at / a.mask.chunk + 1) * a.mask.chunk : at + a.mask.window,
                                              a.queries)};
}
// The score x, capped if there is a cap; and its derivative by the uncapped score, from the capped one.
GPU_FUNCTION float capped(const AttentionArgs& a, float x) {
  return a.score.cap > 0 ? a.score.cap * tanhf(x / a.score.cap) : x;
}
GPU_FUNCTION float cap_slope(const AttentionArgs& a, float score) {
  return a.score.cap > 0 ? 1.0f - score / a.score.cap * (score / a.score.cap) : 1.0f;
}
// The dropout factor of an element of the map: 0 or 1 / (1 - p); 1 without dropout.
GPU_FUNCTION float drop_factor(const AttentionArgs& a, const HeadRow& q, std::int64_t key) {
  const MapDropout& drop = a.drop;
  if (!drop.drops) return 1.0f;
  const std::int64_t query = a.mask.query_positions.at(q.row);
  const std::int64_t index =
      ((drop.first_head + q.head) * drop.all_queries + query) * drop.all_keys + a.mask.key_positions.at(key);
  return keeps(drop.seed, stream_of_sample(drop.key, drop.first_sample + q.sample), index, drop.threshold) ? drop.scale : 0.0f;
}

GPU_KERNEL attention_forward(const AttentionArgs a) {
  const std::int64_t n = block() * warps() + warp();
  if (n >= a.samples * a.heads * a.queries) return;
  const HeadRow q = head_row(n, a.heads, a.queries);
  const std::int64_t kv = q.head * a.kv_heads / a.heads, at = query_at(a, q);
  const Seen keys = seen_keys(a, q.row);
  const bool sinks = a.sinks.data != nullptr;
  float largest = sinks ? load(a.sinks, q.head) : -INFINITY, sum = sinks ? 1.0f : 0.0f, out[kMostPerLane] = {};
  for (std::int64_t first = keys.begin; first < keys.end; first += kWarp) {
    const std::int64_t key = first + lane();
    const bool seen = key < keys.end;
    const float score = seen ? capped(a, a.score.scale * dot(a.q, at, a.k, key_at(a, q.sample, kv, key), a.dim)) : -INFINITY;
    const float now = fmaxf(largest, warp_maximum(score)), shrink = expf(largest - now);
    const float e = seen ? expf(score - now) : 0.0f;
    sum = sum * shrink + warp_sum(e);
    largest = now;
    const float weight = seen ? e * drop_factor(a, q, key) : 0.0f;
    for (int j = 0; j < kMostPerLane; ++j) out[j] *= shrink;
    for (int j = 0; j < kWarp && first + j < keys.end; ++j) {
      const float p = lane_value(weight, j);
      const std::int64_t v = value_at(a, q.sample, kv, first + j);
      for (int i = 0; i < kMostPerLane; ++i)
        if (lane() + i * kWarp < a.value_dim) out[i] += p * load(a.v, v + lane() + i * kWarp);
    }
  }
  for (int i = 0; i < kMostPerLane; ++i)
    if (lane() + i * kWarp < a.value_dim)
      store(a.context, context_at(a, q) + lane() + i * kWarp, sum > 0 ? out[i] / sum : 0.0f);
  if (lane() == 0) store(a.lse, lse_at(a, q), largest + logf(sum));
}

// delta = sum(context dcontext) of a query (Dao et al. 2022, appendix B.2).
GPU_KERNEL attention_delta(const AttentionArgs a) {
  const std::int64_t n = block() * warps() + warp();
  if (n >= a.samples * a.heads * a.queries) return;
  const HeadRow q = head_row(n, a.heads, a.queries);
  float sum = 0;
  for (std::int64_t i = lane(); i < a.value_dim; i += kWarp)
    sum += load(a.context, context_at(a, q) + i) * load(a.dcontext, context_at(a, q) + i);
  sum = warp_sum(sum);
  if (lane() == 0) store(a.delta, lse_at(a, q), sum);
}

// For one element of the map: the probability after dropout, and the gradient of the score.
struct MapPlace {
  float dropped, dscore;
};
GPU_FUNCTION MapPlace map_place(const AttentionArgs& a, const HeadRow& q, std::int64_t kv, std::int64_t key) {
  const std::int64_t lse = lse_at(a, q);
  const float score = capped(a, a.score.scale * dot(a.q, query_at(a, q), a.k, key_at(a, q.sample, kv, key), a.dim));
  const float p = expf(score - load(a.lse, lse)), factor = drop_factor(a, q, key);
  const float dp = dot(a.dcontext, context_at(a, q), a.v, value_at(a, q.sample, kv, key), a.value_dim) * factor;
  return {p * factor, a.score.scale * p * (dp - load(a.delta, lse)) * cap_slope(a, score)};
}

GPU_KERNEL attention_query_grad(const AttentionArgs a) {
  const std::int64_t n = block() * warps() + warp();
  if (n >= a.samples * a.heads * a.queries) return;
  const HeadRow q = head_row(n, a.heads, a.queries);
  const std::int64_t kv = q.head * a.kv_heads / a.heads;
  const Seen keys = seen_keys(a, q.row);
  float dq[kMostPerLane] = {};
  for (std::int64_t first = keys.begin; first < keys.end; first += kWarp) {
    const std::int64_t key = first + lane();
    const float ds = key < keys.end ? map_place(a, q, kv, key).dscore : 0.0f;
    for (int j = 0; j < kWarp && first + j < keys.end; ++j) {
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
  const std::int64_t group = a.heads / a.kv_heads;
  const Seen queries = seeing_queries(a, own.row);
  float dk[kMostPerLane] = {}, dv[kMostPerLane] = {};
  for (std::int64_t head = own.head * group; head < (own.head + 1) * group; ++head)
    for (std::int64_t first = queries.begin; first < queries.end; first += kWarp) {
      const HeadRow q = {own.sample, head, first + lane()};
      const MapPlace place = q.row < queries.end ? map_place(a, q, own.head, own.row) : MapPlace{0, 0};
      for (int j = 0; j < kWarp && first + j < queries.end; ++j) {
        const float ds = lane_value(place.dscore, j), p = lane_value(place.dropped, j);
        const HeadRow from = {own.sample, head, first + j};
        for (int i = 0; i < kMostPerLane; ++i) {
          const std::int64_t c = lane() + i * kWarp;
          if (c < a.dim) dk[i] += ds * load(a.q, query_at(a, from) + c);
          if (c < a.value_dim) dv[i] += p * load(a.dcontext, context_at(a, from) + c);
        }
      }
    }
  const std::int64_t key = key_at(a, own.sample, own.head, own.row), value = value_at(a, own.sample, own.head, own.row);
  for (int i = 0; i < kMostPerLane; ++i) {
    const std::int64_t c = lane() + i * kWarp;
    if (c < a.dim) store(a.dk, key + c, old_value(a.accumulate, a.dk, key + c) + dk[i]);
    if (c < a.value_dim) store(a.dv, value + c, old_value(a.accumulate, a.dv, value + c) + dv[i]);
  }
}

// A thread block per head: dsinks (+)= - sum over the queries of e^(sink - lse) delta, because a sink is a score with the value 0. Reads 8
// bytes per query; bound by memory.
GPU_KERNEL attention_sink_grad(const AttentionArgs a) {
  GPU_SHARED(float, parts, kMostWarps);
  const std::int64_t head = block();
  const float sink = load(a.sinks, head);
  float sum = 0;
  for (std::int64_t i = thread(); i < a.samples * a.queries; i += threads()) {
    const std::int64_t at = (i / a.queries * a.heads + head) * a.queries + i % a.queries;
    sum -= expf(sink - load(a.lse, at)) * load(a.delta, at);
  }
  sum = block_fold(sum, false, parts);
  if (thread() == 0) store(a.dsinks, head, old_value(a.accumulate, a.dsinks, head) + sum);
}

}  // namespace foreshard::gpu
