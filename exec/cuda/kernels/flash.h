// Flash attention (Dao 2023, FlashAttention-2) on tensor cores: bf16, no dropout; heads of 64, 96, 128 or 256 elements, or (latent
// attention) of 192 with values of 128. A thread block has four warps and a tile of 64 queries (in the backward of keys and values: 64
// keys). Each warp holds 16 rows of the tile as fragments in registers. The block iterates over the rows of the other side, whose tiles are
// in shared memory as [row][dim], and as [dim][row] if a product sums over the rows. The backward computes the map twice, once for the
// gradient of queries and once for that of keys and values, so that all sums have a fixed order without atomic operations.
//
//   fragments of mma.m16n8k16 (PTX ISA), with g = lane / 4, q = lane % 4; a word has two neighbouring elements:
//     a   rows g and g + 8, columns from 2q and from 2q + 8
//     b   rows from 2q and from 2q + 8, column g
//     d   rows g and g + 8, columns 2q and 2q + 1
//
// Tiles of keys (of queries) that the mask hides from all 64 rows are not read.
//
// Reference and shapes: see attention.h. FLOPs per query and key as there: 4 dim forward, 6 dim + 8 dim backward (a single pass over the
// map would need 10 dim instead of 14 dim). A row of the other side is read from the L2 cache once per tile of 64 rows; bound by the tensor
// cores.
#pragma once

#include "exec/cuda/kernels/attention.h"

namespace foreshard::gpu {

constexpr int kTile = 64;  // rows of a thread block
constexpr int kFlashThreads = 4 * kWarp;

// Words (pairs of bf16) from one row of a tile to the next. It is an odd multiple of four, which avoids bank conflicts when fragments are
// loaded.
GPU_FUNCTION constexpr int tile_stride(int numbers) { return numbers / 2 + 4; }

struct FlashRows {  // where the rows of an operand lie in memory
  const View& from;
  std::int64_t at, stride, count;  // index of row 0; elements from one row to the next; number of rows
  const GatheredOrder& order;
  GPU_MEMBER std::int64_t row(std::int64_t number) const { return at + order.row(number) * stride; }
};

template <int D>
GPU_FUNCTION void load_fragments(const FlashRows& rows, std::int64_t first, std::uint32_t (*a)[4]) {
  const int g = lane() / 4, q = lane() % 4;
  for (int k = 0; k < D / 16; ++k)
    for (int w = 0; w < 4; ++w) {
      const std::int64_t row = first + g + (w % 2) * 8;
      const int column = k * 16 + (w / 2) * 8 + 2 * q;
      a[k][w] = row < rows.count ? load_word(rows.from, rows.row(row) + column) : 0;
    }
}

// Loads rows [first, first + n) as [row][dim]; rows beyond the end are 0.
template <int D, int n>
GPU_FUNCTION void load_tile(const FlashRows& rows, std::int64_t first, GPU_SHARED_VIEW(std::uint32_t, n*(D / 2 + 4)) tile) {
  for (int i = thread(); i < n * (D / 8); i += kFlashThreads) {
    const int row = i / (D / 8), part = i % (D / 8);
    Quad32 words = {0, 0, 0, 0};
    if (first + row < rows.count) words = load_words(rows.from, rows.row(first + row) + part * 8);
    const int to = row * tile_stride(D) + part * 4;
#ifdef FORESHARD_EMULATED
    tile[to] = words.x, tile[to + 1] = words.y, tile[to + 2] = words.z, tile[to + 3] = words.w;
#else
    *reinterpret_cast<Quad32*>(tile + to) = words;
#endif
  }
}

// Where a thread puts its i-th word of a tile [dim][row] with D elements per row: 8 lanes read 32 neighbouring bytes of a row, and four
// groups of them the rows of the next pairs, so that whole sectors are read and at most two lanes use one bank.
struct TransposedPlace {
  int pair, column;  // rows 2 pair and 2 pair + 1, columns `column` and the next
};
template <int D>
GPU_FUNCTION TransposedPlace transposed_place(int i) {
  const int group = i / kWarp;
  return {group / (D / 16) * 4 + i % kWarp / 8, 2 * (group % (D / 16) * 8 + i % 8)};
}
// Stores two words of neighbouring rows as two words of neighbouring columns.
template <int n, int size>
GPU_FUNCTION void store_transposed(std::uint32_t upper, std::uint32_t lower, const TransposedPlace& at,
                                   GPU_SHARED_VIEW(std::uint32_t, size) tile) {
  tile[at.column * tile_stride(n) + at.pair] = (upper & 0xFFFFu) | lower << 16;
  tile[(at.column + 1) * tile_stride(n) + at.pair] = upper >> 16 | (lower & 0xFFFF0000u);
}

// Loads the same rows as [dim][row]; a word has the elements of two neighbouring rows.
template <int D, int n>
GPU_FUNCTION void load_transposed_tile(const FlashRows& rows, std::int64_t first,
                                       GPU_SHARED_VIEW(std::uint32_t, D*(n / 2 + 4)) tile) {
  for (int i = thread(); i < (n / 2) * (D / 2); i += kFlashThreads) {
    const TransposedPlace at = transposed_place<D>(i);
    const std::int64_t row = first + 2 * at.pair;
    const std::uint32_t upper = row < rows.count ? load_word(rows.from, rows.row(row) + at.column) : 0;
    const std::uint32_t lower = row + 1 < rows.count ? load_word(rows.from, rows.row(row + 1) + at.column) : 0;
    store_transposed<n, D*(n / 2 + 4)>(upper, lower, at, tile);
  }
}

// d [16][8 columns] += a [16][K] tile^T, where the tile is [column][K].
template <int K, int size>
GPU_FUNCTION void multiply_tile(float (*d)[4], int columns, const std::uint32_t (*a)[4],
                                GPU_SHARED_VIEW(std::uint32_t, size) tile) {
  const int g = lane() / 4, q = lane() % 4;
  GPU_UNROLL
  for (int n = 0; n < columns; ++n) {
    GPU_UNROLL
    for (int k = 0; k < K / 16; ++k) {
      const int at = (n * 8 + g) * tile_stride(K) + k * 8 + q;
      const std::uint32_t b[2] = {tile[at], tile[at + 4]};
      multiply_fragments(d[n], a[k], b);
    }
  }
}

// Converts results (fragments d) to the left factor (fragments a) of the next product.
template <int n>
GPU_FUNCTION void as_fragments(const float (*d)[4], std::uint32_t (*a)[4]) {
  GPU_UNROLL
  for (int k = 0; k < n / 2; ++k) {
    a[k][0] = pack_bf16(d[2 * k][0], d[2 * k][1]);
    a[k][1] = pack_bf16(d[2 * k][2], d[2 * k][3]);
    a[k][2] = pack_bf16(d[2 * k + 1][0], d[2 * k + 1][1]);
    a[k][3] = pack_bf16(d[2 * k + 1][2], d[2 * k + 1][3]);
  }
}

// Writes 16 rows of D elements, or adds them; row r is multiplied by factor[r >= 8].
template <int D>
GPU_FUNCTION void store_rows(const FlashRows& to, std::int64_t first, const float (*d)[4], const float* factor,
                             bool accumulate) {
  const int g = lane() / 4, q = lane() % 4;
  for (int n = 0; n < D / 8; ++n)
    for (int half = 0; half < 2; ++half) {
      const std::int64_t row = first + g + 8 * half;
      if (row >= to.count) continue;
      const std::int64_t i = to.row(row) + n * 8 + 2 * q;
      const std::uint32_t old = accumulate ? load_word(to.from, i) : 0;
      const float low = from_bf16(static_cast<std::uint16_t>(old)) + d[n][2 * half] * factor[half];
      const float high = from_bf16(static_cast<std::uint16_t>(old >> 16)) + d[n][2 * half + 1] * factor[half];
      store_word(to.from, i, pack_bf16(low, high));
    }
}

GPU_FUNCTION float quad_fold(float x, bool maximum) {
  for (int mask = 1; mask <= 2; mask *= 2) {
    const float other = lane_xor(x, mask);
    x = maximum ? fmaxf(x, other) : x + other;
  }
  return x;
}

// The rows [begin, end) of the other side that a row attends to, or that attend to it (Seen), as 32-bit numbers.
struct SeenRows {
  int begin, end;
  GPU_MEMBER bool has(int i) const { return i >= begin && i < end; }
};
GPU_FUNCTION SeenRows as_rows(const Seen& seen, bool exists) {
  return exists ? SeenRows{static_cast<int>(seen.begin), static_cast<int>(seen.end)} : SeenRows{0, 0};
}
// All keys that any query of a tile attends to, and all queries that attend to any of its keys. Positions increase with the row number.
GPU_FUNCTION SeenRows keys_of_tile(const AttentionArgs& a, std::int64_t first) {
  const std::int64_t last = (first + kTile < a.queries ? first + kTile : a.queries) - 1;
  return {static_cast<int>(seen_keys(a, first).begin), static_cast<int>(seen_keys(a, last).end)};
}
GPU_FUNCTION SeenRows queries_of_tile(const AttentionArgs& a, std::int64_t first) {
  const std::int64_t last = (first + kTile < a.keys ? first + kTile : a.keys) - 1;
  return {static_cast<int>(seeing_queries(a, first).begin), static_cast<int>(seeing_queries(a, last).end)};
}

// The score of a product, and the derivative of a score by its product; with a cap by tanh(x) = 1 - 2 / (1 + e^2x). `bends`: whether there
// is a cap.
template <bool bends>
GPU_FUNCTION float score_of(const AttentionArgs& a, float product) {
  const float x = a.score.scale * product;
  if constexpr (!bends) return x;
  return a.score.cap - 2.0f * a.score.cap * quick_reciprocal(1.0f + quick_exp(2.0f * x / a.score.cap));
}
template <bool bends>
GPU_FUNCTION float slope_of(const AttentionArgs& a, float score) {
  if constexpr (!bends) return a.score.scale;
  return a.score.scale * (1.0f - score / a.score.cap * (score / a.score.cap));
}

// D: elements of a query and key head; V: of a value head; n: rows of a tile in shared memory.
template <int D, int V, int n>
GPU_FUNCTION void flash_forward(const AttentionArgs& a) {
  GPU_SHARED(std::uint32_t, k_tile, n * (D / 2 + 4));
  GPU_SHARED(std::uint32_t, v_tile, V * (n / 2 + 4));
  const HeadRow tile = {block_y() / a.heads, block_y() % a.heads, block() * kTile};
  const std::int64_t kv = tile.head * a.kv_heads / a.heads, first_row = tile.row + warp() * 16;
  const HeadRow top = {tile.sample, tile.head, 0};
  const GatheredOrder plain = {};
  const FlashRows q = {a.q, query_at(a, top), a.query_steps.position, a.queries, plain};
  const FlashRows k = {a.k, key_at(a, tile.sample, kv, 0), a.key_steps.position, a.keys, a.mask.order};
  const FlashRows v = {a.v, value_at(a, tile.sample, kv, 0), a.key_steps.position, a.keys, a.mask.order};
  std::uint32_t q_parts[D / 16][4], p_parts[n / 16][4];
  load_fragments<D>(q, first_row, q_parts);
  const bool sinks = a.sinks.data != nullptr;
  const float sink = sinks ? load(a.sinks, tile.head) : -INFINITY, has_sink = sinks ? 1.0f : 0.0f;
  float out[V / 8][4] = {}, largest[2] = {sink, sink}, sum[2] = {has_sink, has_sink};
  SeenRows seen[2];
  for (int half = 0; half < 2; ++half) {
    const std::int64_t row = first_row + lane() / 4 + 8 * half;
    seen[half] = as_rows(seen_keys(a, row), row < a.queries);  // a row of padding attends to no key
  }
  const SeenRows all = keys_of_tile(a, tile.row);
  for (int first = all.begin; first < all.end; first += n) {
    GPU_BARRIER();  // the tiles before have been read
    load_tile<D, n>(k, first, k_tile);
    load_transposed_tile<V, n>(v, first, v_tile);
    GPU_BARRIER();
    float s[n / 8][4] = {};
    multiply_tile<D, n*(D / 2 + 4)>(s, n / 8, q_parts, k_tile);
    for (int half = 0; half < 2; ++half) {
      float now = largest[half];
      for (int i = 0; i < n / 8; ++i)
        for (int j = 2 * half; j < 2 * half + 2; ++j) {
          const int key = first + i * 8 + 2 * (lane() % 4) + j % 2;
          const float score = a.score.cap > 0 ? score_of<true>(a, s[i][j]) : score_of<false>(a, s[i][j]);
          s[i][j] = seen[half].has(key) ? score : -INFINITY;
          now = fmaxf(now, s[i][j]);
        }
      now = quad_fold(now, true);
      const float base = now == -INFINITY ? 0.0f : now;  // a row that has seen no key yet
      const float shrink = expf(largest[half] - base);
      largest[half] = now;
      float part = 0;
      for (int i = 0; i < n / 8; ++i)
        for (int j = 2 * half; j < 2 * half + 2; ++j) {
          s[i][j] = expf(s[i][j] - base);
          part += s[i][j];
        }
      sum[half] = sum[half] * shrink + quad_fold(part, false);
      for (int i = 0; i < V / 8; ++i) out[i][2 * half] *= shrink, out[i][2 * half + 1] *= shrink;
    }
    as_fragments<n / 8>(s, p_parts);
    multiply_tile<n, V*(n / 2 + 4)>(out, V / 8, p_parts, v_tile);
  }
  const float factor[2] = {sum[0] > 0 ? 1.0f / sum[0] : 0.0f, sum[1] > 0 ? 1.0f / sum[1] : 0.0f};
  store_rows<V>({a.context, context_at(a, top), a.samples * a.heads * V, a.queries, plain}, first_row, out, factor, false);
  for (int half = 0; half < 2; ++half) {
    const std::int64_t row = first_row + lane() / 4 + 8 * half;
    if (lane() % 4 == 0 && row < a.queries)
      store(a.lse, lse_at(a, {tile.sample, tile.head, row}), largest[half] + logf(sum[half]));
  }
}

template <int D, int V, int n, bool bends>
GPU_FUNCTION void flash_query_grad(const AttentionArgs& a, GPU_SHARED_VIEW(std::uint32_t, n*(D / 2 + 4)) k_tile,
                                   GPU_SHARED_VIEW(std::uint32_t, n*(V / 2 + 4)) v_tile,
                                   GPU_SHARED_VIEW(std::uint32_t, D*(n / 2 + 4)) k_transposed) {
  const HeadRow tile = {block_y() / a.heads, block_y() % a.heads, block() * kTile};
  const std::int64_t kv = tile.head * a.kv_heads / a.heads, first_row = tile.row + warp() * 16;
  const HeadRow top = {tile.sample, tile.head, 0};
  const FlashRows k = {a.k, key_at(a, tile.sample, kv, 0), a.key_steps.position, a.keys, a.mask.order};
  const FlashRows v = {a.v, value_at(a, tile.sample, kv, 0), a.key_steps.position, a.keys, a.mask.order};
  std::uint32_t q_parts[D / 16][4], grad_parts[V / 16][4], s_parts[n / 16][4];
  const GatheredOrder plain = {};
  load_fragments<D>({a.q, query_at(a, top), a.query_steps.position, a.queries, plain}, first_row, q_parts);
  load_fragments<V>({a.dcontext, context_at(a, top), a.samples * a.heads * V, a.queries, plain}, first_row, grad_parts);
  float dq[D / 8][4] = {}, lse[2] = {0, 0}, delta[2] = {0, 0};
  SeenRows seen[2];
  for (int half = 0; half < 2; ++half) {
    const std::int64_t row = first_row + lane() / 4 + 8 * half;
    seen[half] = as_rows(seen_keys(a, row), row < a.queries);
    if (row < a.queries) {
      lse[half] = load(a.lse, lse_at(a, {tile.sample, tile.head, row}));
      delta[half] = load(a.delta, lse_at(a, {tile.sample, tile.head, row}));
    }
  }
  const SeenRows all = keys_of_tile(a, tile.row);
  for (int first = all.begin; first < all.end; first += n) {
    GPU_BARRIER();  // the tiles before have been read
    load_tile<D, n>(k, first, k_tile);
    load_tile<V, n>(v, first, v_tile);
    load_transposed_tile<D, n>(k, first, k_transposed);
    GPU_BARRIER();
    float s[n / 8][4] = {}, dp[n / 8][4] = {};
    multiply_tile<D, n*(D / 2 + 4)>(s, n / 8, q_parts, k_tile);
    multiply_tile<V, n*(V / 2 + 4)>(dp, n / 8, grad_parts, v_tile);
    for (int i = 0; i < n / 8; ++i)
      for (int j = 0; j < 4; ++j) {
        const bool sees = seen[j / 2].has(first + i * 8 + 2 * (lane() % 4) + j % 2);
        const float score = score_of<bends>(a, s[i][j]);
        s[i][j] = sees ? slope_of<bends>(a, score) * expf(score - lse[j / 2]) * (dp[i][j] - delta[j / 2]) : 0.0f;
      }
    as_fragments<n / 8>(s, s_parts);
    multiply_tile<n, D*(n / 2 + 4)>(dq, D / 8, s_parts, k_transposed);
  }
  const float one[2] = {1, 1};
  store_rows<D>({a.dq, query_at(a, top), a.query_steps.position, a.queries, plain}, first_row, dq, one, a.accumulate);
}
template <int D, int V, int n>
GPU_FUNCTION void flash_query_grad_of(const AttentionArgs& a) {
  GPU_SHARED(std::uint32_t, k_tile, n * (D / 2 + 4));
  GPU_SHARED(std::uint32_t, v_tile, n * (V / 2 + 4));
  GPU_SHARED(std::uint32_t, k_transposed, D * (n / 2 + 4));
  if (a.score.cap > 0) return flash_query_grad<D, V, n, true>(a, k_tile, v_tile, k_transposed);
  flash_query_grad<D, V, n, false>(a, k_tile, v_tile, k_transposed);
}

// Tiles of queries and of gradients in shared memory, as [row][dim] and as [dim][row].
template <int D, int V, int n>
struct QueryTiles {
  GPU_SHARED_VIEW(std::uint32_t, n*(D / 2 + 4)) q;
  GPU_SHARED_VIEW(std::uint32_t, n*(V / 2 + 4)) grad;
  GPU_SHARED_VIEW(std::uint32_t, D*(n / 2 + 4)) q_transposed;
  GPU_SHARED_VIEW(std::uint32_t, V*(n / 2 + 4)) grad_transposed;
};

// It computes the transposed map: rows are the keys of this block, columns the queries of a tile.
template <int D, int V, int n, bool bends>
GPU_FUNCTION void flash_key_grad(const AttentionArgs& a, const QueryTiles<D, V, n>& tiles) {
  const std::int64_t sample = block_y() / a.kv_heads, kv = block_y() % a.kv_heads, group = a.heads / a.kv_heads;
  const std::int64_t first_row = block() * kTile + warp() * 16;
  const std::int64_t keys_at = key_at(a, sample, kv, 0), values_at = value_at(a, sample, kv, 0);
  std::uint32_t k_parts[D / 16][4], v_parts[V / 16][4], s_parts[n / 16][4], p_parts[n / 16][4];
  const GatheredOrder plain = {};
  load_fragments<D>({a.k, keys_at, a.key_steps.position, a.keys, a.mask.order}, first_row, k_parts);
  load_fragments<V>({a.v, values_at, a.key_steps.position, a.keys, a.mask.order}, first_row, v_parts);
  float dk[D / 8][4] = {}, dv[V / 8][4] = {};
  SeenRows seeing[2];
  for (int half = 0; half < 2; ++half) {
    const std::int64_t key = first_row + lane() / 4 + 8 * half;
    seeing[half] = as_rows(seeing_queries(a, key), key < a.keys);
  }
  const SeenRows all = queries_of_tile(a, block() * kTile);
  for (std::int64_t head = kv * group; head < (kv + 1) * group; ++head) {
    const HeadRow top = {sample, head, 0};
    const FlashRows q = {a.q, query_at(a, top), a.query_steps.position, a.queries, plain};
    const FlashRows grad = {a.dcontext, context_at(a, top), a.samples * a.heads * V, a.queries, plain};
    for (int first = all.begin; first < all.end; first += n) {
      GPU_BARRIER();  // the tiles before have been read
      load_tile<D, n>(q, first, tiles.q);
      load_tile<V, n>(grad, first, tiles.grad);
      load_transposed_tile<D, n>(q, first, tiles.q_transposed);
      load_transposed_tile<V, n>(grad, first, tiles.grad_transposed);
      GPU_BARRIER();
      float s[n / 8][4] = {}, dp[n / 8][4] = {};
      multiply_tile<D, n*(D / 2 + 4)>(s, n / 8, k_parts, tiles.q);
      multiply_tile<V, n*(V / 2 + 4)>(dp, n / 8, v_parts, tiles.grad);
      for (int i = 0; i < n / 8; ++i)
        for (int j = 0; j < 4; ++j) {
          const int row = first + i * 8 + 2 * (lane() % 4) + j % 2;
          const bool sees = seeing[j / 2].has(row);
          const std::int64_t at = lse_at(a, {sample, head, row});
          const float score = score_of<bends>(a, s[i][j]), p = sees ? expf(score - load(a.lse, at)) : 0.0f;
          dp[i][j] = sees ? slope_of<bends>(a, score) * p * (dp[i][j] - load(a.delta, at)) : 0.0f;
          s[i][j] = p;
        }
      as_fragments<n / 8>(s, p_parts);
      as_fragments<n / 8>(dp, s_parts);
      multiply_tile<n, V*(n / 2 + 4)>(dv, V / 8, p_parts, tiles.grad_transposed);
      multiply_tile<n, D*(n / 2 + 4)>(dk, D / 8, s_parts, tiles.q_transposed);
    }
  }
  const float one[2] = {1, 1};
  store_rows<D>({a.dk, keys_at, a.key_steps.position, a.keys, a.mask.order}, first_row, dk, one, a.accumulate);
  store_rows<V>({a.dv, values_at, a.key_steps.position, a.keys, a.mask.order}, first_row, dv, one, a.accumulate);
}
template <int D, int V, int n>
GPU_FUNCTION void flash_key_grad_of(const AttentionArgs& a) {
  GPU_SHARED(std::uint32_t, q_tile, n * (D / 2 + 4));
  GPU_SHARED(std::uint32_t, grad_tile, n * (V / 2 + 4));
  GPU_SHARED(std::uint32_t, q_transposed, D * (n / 2 + 4));
  GPU_SHARED(std::uint32_t, grad_transposed, V * (n / 2 + 4));
  const QueryTiles<D, V, n> tiles = {q_tile, grad_tile, q_transposed, grad_transposed};
  if (a.score.cap > 0) return flash_key_grad<D, V, n, true>(a, tiles);
  flash_key_grad<D, V, n, false>(a, tiles);
}

// `forward`, `backward`: rows of a tile in shared memory; at most 48 KB of it.
#define FLASH(name, D, V, forward, backward)                                                            \
  GPU_KERNEL flash_forward_##name(const AttentionArgs a) { flash_forward<D, V, forward>(a); }           \
  GPU_KERNEL flash_query_grad_##name(const AttentionArgs a) { flash_query_grad_of<D, V, backward>(a); } \
  GPU_KERNEL flash_key_grad_##name(const AttentionArgs a) { flash_key_grad_of<D, V, backward>(a); }
FLASH(64, 64, 64, 64, 32)
FLASH(96, 96, 96, 64, 32)
FLASH(128, 128, 128, 64, 32)
FLASH(192, 192, 128, 64, 32)
FLASH(256, 256, 256, 32, 16)
#undef FLASH

}  // namespace foreshard::gpu
