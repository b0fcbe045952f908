// The arguments of the kernels that work on heads: attention, and what prepares queries, keys and values. Conventions: kernel_args.h.
#pragma once

#include "exec/cuda/kernel_args.h"

namespace foreshard::gpu {

// Dropout of an attention map. The random word of an element depends on its sample, head and positions in the whole model, so every
// sharding drops the same elements. seed, key, threshold and scale as in DropoutArgs.
struct MapDropout {
  std::uint64_t seed, key;
  std::int64_t first_head, first_sample;  // index in the model of the first head; global number of the first sample
  std::int64_t all_queries, all_keys;     // positions of the whole sequence
  std::uint32_t threshold;
  float scale;
  bool drops;  // false: no dropout
};

// Strides of an operand of attention: element (position, sample, head, i) is at position * .position + sample * .sample + head * size + i,
// where size is `dim`, for values `value_dim`.
struct RowSteps {
  std::int64_t position, sample;
};

// The keys that a query attends to. Causal: those up to its own position; of them only the last `window`, or only those in its own chunk of
// `chunk` positions (0: no limit). Kernels number keys in the order of their positions; order.row(number) is the row of a key in memory.
struct AttentionMask {
  bool causal;
  std::int64_t window, chunk;
  Positions query_positions, key_positions;
  GatheredOrder order;
};
// A score: scale q k, or with a cap (above 0) cap tanh(scale q k / cap).
struct ScoreSettings {
  float scale, cap;
};

// Fused attention, which does not store the map of scores: context = softmax(scores) v. lse and delta [sample, head, query], fp32: log(sum
// of e^scores), and sum of context * dcontext. The gradients dq, dk, dv and dsinks are accumulated if `accumulate` is set. sinks [head]:
// one more score for each query, with the value 0.
struct AttentionArgs {
  View q, k, v, sinks, context, lse, dcontext, delta, dq, dk, dv, dsinks;
  std::int64_t samples, queries, keys, heads, kv_heads, dim, value_dim;
  RowSteps query_steps, key_steps;
  MapDropout drop;
  ScoreSettings score;
  AttentionMask mask;
  bool accumulate;
  template <class F>
  void each(F f) const {
    f(q), f(k), f(v), f(sinks), f(context), f(lse), f(dcontext), f(delta), f(dq), f(dk), f(dv), f(dsinks);
  }
};

// Combines attention over two disjoint sets of keys: (context, lse) and (other, other_lse) to (merged, merged_lse). Contexts are [query,
// sample, head, dim], lse are [sample, head, query]. See ops::MergeAttention (core/op/context_parallel.h).
struct MergeArgs {
  View context, lse, other, other_lse, merged, merged_lse;
  std::int64_t samples, queries, heads, dim;
  template <class F>
  void each(F f) const {
    f(context), f(lse), f(other), f(other_lse), f(merged), f(merged_lse);
  }
};

// Heads for an all-to-all (ops::HeadParts): rows of [heads | kv_heads | kv_heads] to `parts` arrays with a part of the heads each; `join`:
// the reverse.
struct HeadPartsArgs {
  View x, y;
  std::int64_t rows, heads, kv_heads, dim;
  int parts;
  bool join, accumulate;
  template <class F>
  void each(F f) const {
    f(x), f(y);
  }
};

// RMSNorm of query and key heads (ops::HeadNorm). A row of x has groups of elements, each with a norm of its own: `groups[0]` groups of
// widths[0] elements for queries, then `groups[1]` for keys. A row of y has the same and then `values` elements, which are copied from
// `value` (backward: to it). Forward: y = x inverse (one + weight), with inverse = 1 / root mean square of the group. Backward: dx (+)=
// gradient of x, `value` (+)= gradient of the values, stats[row, group] = inverse, if there are stats; dx without data: only stats.
struct HeadNormArgs {
  View x, value, weights[2], y, dy, dx, stats;
  std::int64_t rows, width, values;  // width: of a row of x
  int groups[2], widths[2];
  int lanes;  // of a warp that share a group: a power of two
  float eps, one;
  bool accumulate;
  template <class F>
  void each(F f) const {
    f(x), f(value), f(weights[0]), f(weights[1]), f(y), f(dy), f(dx), f(stats);
  }
};

// The gradient of a weight of HeadNorm: sums[chunk, column] = sum over rows r and groups g of dy x stats[r, g]; each chunk has
// rows_of_chunk rows. Groups begin at element `begin` of a row and are `columns` wide; `first` is the number of the first one in `stats`,
// which has `all` entries per row.
struct HeadWeightArgs {
  View dy, x, stats, sums;
  std::int64_t rows, rows_of_chunk, dy_width, x_width, begin;
  int groups, columns, first, all;
  bool packed;  // 32 packs of columns per block, else 32 columns
  template <class F>
  void each(F f) const {
    f(dy), f(x), f(stats), f(sums);
  }
};

// Keys and values of latent attention (ops::LatentHeads): rows x [heads plain | heads value] and `shared` [rotated] to rows y [heads (plain
// | rotated) | heads value]. Backward (`back`): x and `shared` (+)= their gradients, from y.
struct LatentHeadsArgs {
  View x, shared, y;
  std::int64_t rows;
  int heads, plain, rotated, value;
  bool back, accumulate;
  template <class F>
  void each(F f) const {
    f(x), f(shared), f(y);
  }
};

}  // namespace foreshard::gpu
