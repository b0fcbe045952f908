// Token and position embeddings and their gradients.
// Reference: exec/host/host_embedding.cpp.
#pragma once

#include "exec/cuda/kernels/packs.h"

namespace foreshard::gpu {

// Copies a row of `count` elements bit by bit, from element `at` of one array to element `begin` of another; at < 0: writes zeros.
template <Type type>
GPU_FUNCTION void copy_row(const View& from, std::int64_t at, const View& to, std::int64_t begin, int count) {
  for (int c = kPack<type> * thread(); c < count; c += kPack<type> * threads())
    store_quad<type>(to, begin + c, at >= 0 ? load_quad<type>(from, at + c) : Quad32{0, 0, 0, 0});
}

// A thread block per token. A token outside the rows of this rank gives zeros; the all-reduce over ranks then adds the row of the rank that
// has it. Reads 2 bytes and writes 2 per element in bf16; bound by memory.
GPU_KERNEL token_rows(const LookupArgs a) {
  const std::int64_t t = block(), row = load_integer(a.tokens, t) - a.first_row;
  const bool here = row >= 0 && row < a.table_rows;
  const Type type = a.rows.type;
  if (has_packs(type) && a.h % pack_of(type) == 0 && packed(a.rows, type) && packed(a.table, type)) {
    RUN_BODY(type, copy_row, a.table, here ? row * a.h : -1, a.rows, t * a.h, static_cast<int>(a.h));
    return;
  }
  for (std::int64_t c = thread(); c < a.h; c += threads())
    store(a.rows, t * a.h + c, here ? load(a.table, row * a.h + c) : 0.0f);
}

// The number of threads of the block before this one that have a hit, and of all threads with a hit. `counts` has an entry per warp, twice:
// `turn` alternates between 0 and 1.
struct Hits {
  int before, all;
};
GPU_FUNCTION Hits count_hits(bool hit, int turn, GPU_SHARED_VIEW(int, 2 * kMostWarps) counts) {
  float inclusive = hit ? 1.0f : 0.0f;  // an integer of at most 32, exact in float
  for (int apart = 1; apart < kWarp; apart *= 2) {
    const float lower = lane_value(inclusive, (lane() - apart) & (kWarp - 1));
    if (lane() >= apart) inclusive += lower;
  }
  if (lane() == kWarp - 1) counts[turn * kMostWarps + warp()] = static_cast<int>(inclusive);
  GPU_BARRIER();
  Hits hits = {static_cast<int>(inclusive) - (hit ? 1 : 0), 0};
  for (int w = 0; w < warps(); ++w) {
    const int count = counts[turn * kMostWarps + w];
    hits.before += w < warp() ? count : 0;
    hits.all += count;
  }
  return hits;
}

// Sums the rows of all occurrences of a token: it lists the occurrences among 256 tokens at a time, in order, and loads four of their rows
// at once.
template <Type type, int n>
GPU_FUNCTION void sum_token_rows(const LookupArgs& a, std::int64_t token, GPU_SHARED_VIEW(int, 2 * kMostWarps) counts,
                                 GPU_SHARED_VIEW(int, kThreads) list) {
  constexpr int kAtOnce = 4;
  const int t = static_cast<int>(block()), h = static_cast<int>(a.h), tokens = static_cast<int>(a.count);
  const std::int64_t to = (token - a.first_row) * a.h;
  int turn = 0;
  for (int c0 = 0; c0 < h; c0 += n * threads()) {
    const int c = c0 + n * thread();
    const bool here = c < h;
    float sum[n];
    GPU_UNROLL
    for (int j = 0; j < n; ++j) sum[j] = here ? load(a.table, to + c + j) : 0.0f;
    for (int first = t; first < tokens; first += threads()) {
      const int i = first + thread();
      const bool hit = i < tokens && load_integer(a.tokens, i) == token;
      const Hits hits = count_hits(hit, turn, counts);
      turn ^= 1;
      if (hits.all == 0) continue;  // the common case
      if (hit) list[hits.before] = i;
      GPU_BARRIER();
      for (int at = 0; at < hits.all && here; at += kAtOnce) {
        float x[kAtOnce][n];
        GPU_UNROLL
        for (int k = 0; k < kAtOnce; ++k)
          if (at + k < hits.all) load_columns<type, n>(a.rows, static_cast<std::int64_t>(list[at + k]) * h + c, x[k]);
        GPU_UNROLL
        for (int k = 0; k < kAtOnce; ++k) {
          if (at + k >= hits.all) continue;
          GPU_UNROLL
          for (int j = 0; j < n; ++j) sum[j] += x[k][j];
        }
      }
    }
    GPU_UNROLL
    for (int j = 0; j < n; ++j)
      if (here) store(a.table, to + c + j, sum[j]);
  }
}
template <Type type>
GPU_FUNCTION void sum_token_packs(const LookupArgs& a, std::int64_t token, GPU_SHARED_VIEW(int, 2 * kMostWarps) counts,
                                  GPU_SHARED_VIEW(int, kThreads) list) {
  sum_token_rows<type, kPack<type>>(a, token, counts, list);
}

// A thread block per token. The block of a token's first occurrence sums the rows of all its occurrences, in order, so the sums are the
// same in every run. Reads 2 bytes per element in bf16, and 8 bytes per pair of a distinct token and a token; bound by memory.
GPU_KERNEL token_grad(const LookupArgs a) {
  GPU_SHARED(float, found, kMostWarps);
  GPU_SHARED(int, counts, 2 * kMostWarps);
  GPU_SHARED(int, list, kThreads);
  const std::int64_t t = block(), token = load_integer(a.tokens, t), row = token - a.first_row;
  if (row < 0 || row >= a.table_rows) return;
  float earlier = 0;
  for (std::int64_t i = thread(); i < t; i += threads())
    if (load_integer(a.tokens, i) == token) earlier = 1;
  if (block_fold(earlier, true, found) > 0) return;
  const Type type = a.rows.type;
  if (has_packs(type) && a.h % pack_of(type) == 0 && packed(a.rows, type)) {
    RUN_BODY(type, sum_token_packs, a, token, counts, list);
    return;
  }
  sum_token_rows<Type::F32, 1>(a, token, counts, list);
}

GPU_FUNCTION std::int64_t type_of(const PositionArgs& a, std::int64_t position) {
  return a.held.at(position) * a.type_rows / a.sequence;
}

// y = x + table[position] + types[type of the position]. Reads 4 bytes (with types 6) and writes 2 per element in bf16; bound by memory.
template <Type type>
GPU_FUNCTION void position_rows_packs(const PositionArgs& a, std::int64_t row, std::int64_t table, std::int64_t types) {
  constexpr int n = kPack<type>;
  for (int c = n * thread(); c < a.h; c += n * threads()) {
    float x[n], more[n];
    load_pack<type>(a.x, row + c, x);
    if (a.table.data) {
      load_pack<type>(a.table, table + c, more);
      GPU_UNROLL
      for (int j = 0; j < n; ++j) x[j] += more[j];
    }
    if (a.types.data) {
      load_pack<type>(a.types, types + c, more);
      GPU_UNROLL
      for (int j = 0; j < n; ++j) x[j] += more[j];
    }
    store_pack<type>(a.y, row + c, x);
  }
}

GPU_KERNEL position_rows(const PositionArgs a) {
  const std::int64_t position = block() / a.samples, row = block() * a.h, table = a.held.at(position) * a.h;
  const std::int64_t types = a.types.data ? type_of(a, position) * a.h : 0;
  const Type type = a.x.type;
  if (has_packs(type) && a.h % pack_of(type) == 0 && packed(a.x, type) && packed(a.table, type) && packed(a.types, type) &&
      packed(a.y, type)) {
    RUN_BODY(type, position_rows_packs, a, row, table, types);
    return;
  }
  for (std::int64_t c = thread(); c < a.h; c += threads()) {
    float x = load(a.x, row + c);
    if (a.table.data) x += load(a.table, table + c);
    if (a.types.data) x += load(a.types, types + c);
    store(a.y, row + c, x);
  }
}

// A thread block per position sums the rows of all samples at this position. Reads 2 bytes per element in bf16; bound by memory.
template <Type type, Type gradient>
GPU_FUNCTION void position_grad_in(const PositionArgs& a, std::int64_t from, std::int64_t to) {
  constexpr int n = kPack<type>;
  for (int c = n * thread(); c < a.h; c += n * threads()) {
    float sum[n], x[n];
    load_pack<gradient, n>(a.table, to + c, sum);
    for (int s = 0; s < a.samples; ++s) {
      load_pack<type>(a.x, from + s * a.h + c, x);
      GPU_UNROLL
      for (int j = 0; j < n; ++j) sum[j] += x[j];
    }
    store_pack<gradient, n>(a.table, to + c, sum);
  }
}
template <Type type>
GPU_FUNCTION void position_grad_packs(const PositionArgs& a, std::int64_t from, std::int64_t to) {
  if (a.table.type == type) return position_grad_in<type, type>(a, from, to);
  position_grad_in<type, Type::F32>(a, from, to);
}

GPU_KERNEL position_grad(const PositionArgs a) {
  const std::int64_t from = block() * a.samples * a.h, to = a.held.at(block()) * a.h;
  const Type type = a.x.type;
  if (has_packs(type) && a.h % pack_of(type) == 0 && packed(a.x, type) && on_pack_border(a.table) &&
      (a.table.type == type || a.table.type == Type::F32)) {
    RUN_BODY(type, position_grad_packs, a, from, to);
    return;
  }
  for (std::int64_t c = thread(); c < a.h; c += threads()) {
    float sum = load(a.table, to + c);
    for (std::int64_t s = 0; s < a.samples; ++s) sum += load(a.x, from + s * a.h + c);
    store(a.table, to + c, sum);
  }
}

}  // namespace foreshard::gpu
