// Heads of queries, keys and values before attention: norms of query and key heads, and the heads of latent attention.
// Reference: exec/host/host_head_rows.cpp.
#pragma once

#include "exec/cuda/attention_args.h"
#include "exec/cuda/kernels/packs.h"

namespace foreshard::gpu {

// A group of elements of a row that has a norm of its own; `lanes` lanes of a warp (a team) share it. part: 0 queries, 1 keys, 2 values.
struct HeadGroup {
  std::int64_t row, x, y;          // number of the row; index of the first element in x (of values: in `value`), and in y
  int part, number, width, first;  // number: of the group in its row; first: element of the group where this lane begins
};
GPU_FUNCTION int teams_of_row(const HeadNormArgs& a) { return a.groups[0] + a.groups[1] + (a.values > 0 ? 1 : 0); }
template <int n>
GPU_FUNCTION HeadGroup head_group(const HeadNormArgs& a) {
  const int teams = teams_of_row(a), of_block = threads() / a.lanes;
  const int team = static_cast<int>(block()) * of_block + thread() / a.lanes, row = team / teams;
  HeadGroup g = {};
  g.row = row, g.number = team - row * teams, g.first = n * (thread() % a.lanes);
  g.part = g.number < a.groups[0] ? 0 : g.number < a.groups[0] + a.groups[1] ? 1 : 2;
  const std::int64_t queries = static_cast<std::int64_t>(a.groups[0]) * a.widths[0];
  const int in_part = g.number - (g.part > 0 ? a.groups[0] : 0);
  const std::int64_t at = g.part == 2 ? a.width : g.part == 1 ? queries + in_part * a.widths[1] : in_part * a.widths[0];
  g.width = g.part == 2 ? static_cast<int>(a.values) : a.widths[g.part];
  g.y = g.row * (a.width + a.values) + at, g.x = g.part == 2 ? g.row * a.values : g.row * a.width + at;
  if (g.row >= a.rows) g.width = 0;  // there is no such row; its lanes still take part in the sums
  return g;
}
GPU_FUNCTION float lanes_sum(float x, int lanes) {
  for (int mask = lanes / 2; mask > 0; mask /= 2) x += lane_xor(x, mask);
  return x;
}
// 1 / root mean square of the group.
template <Type type, int n>
GPU_FUNCTION float head_inverse(const HeadNormArgs& a, const HeadGroup& g) {
  float squares = 0, x[n];
  for (int c = g.first; c < (g.part == 2 ? 0 : g.width); c += n * a.lanes) {
    load_columns<type, n>(a.x, g.x + c, x);
    GPU_UNROLL
    for (int j = 0; j < n; ++j) squares += x[j] * x[j];
  }
  return 1.0f / sqrtf(lanes_sum(squares, a.lanes) / static_cast<float>(g.width) + a.eps);
}
// The factors of elements c, c + 1, ... of a group.
template <Type type, int n>
GPU_FUNCTION void head_factors(const HeadNormArgs& a, int part, int c, float* w) {
  GPU_UNROLL
  for (int j = 0; j < n; ++j) w[j] = 1;
  if (!a.weights[part].data) return;
  load_columns<type, n>(a.weights[part], c, w);
  GPU_UNROLL
  for (int j = 0; j < n; ++j) w[j] += a.one;
}

// Reads 2 bytes and writes 2 per element in bf16, because the second pass over a group finds it in the cache; bound by memory.
template <Type type, int n>
GPU_FUNCTION void head_norm_forward_in(const HeadNormArgs& a) {
  const HeadGroup g = head_group<n>(a);
  const float inverse = head_inverse<type, n>(a, g);
  float x[n], w[n];
  for (int c = g.first; c < g.width; c += n * a.lanes) {
    load_columns<type, n>(g.part == 2 ? a.value : a.x, g.x + c, x);
    if (g.part < 2) {
      head_factors<type, n>(a, g.part, c, w);
      GPU_UNROLL
      for (int j = 0; j < n; ++j) x[j] *= inverse * w[j];
    }
    store_columns<type, n>(a.y, g.y + c, x);
  }
}
// With u = x inverse and f = dy (one + w): dx = inverse (f - u mean(f u)). Reads 4 bytes and writes 2 per element in bf16; bound by memory.
template <Type type, int n>
GPU_FUNCTION void head_norm_backward_in(const HeadNormArgs& a) {
  const HeadGroup g = head_group<n>(a);
  const float inverse = head_inverse<type, n>(a, g);
  if (a.stats.data && g.part < 2 && g.width > 0 && g.first == 0)
    store(a.stats, g.row * (a.groups[0] + a.groups[1]) + g.number, inverse);
  if (!a.dx.data) return;
  float x[n], dy[n], w[n], old[n], projection = 0;
  for (int c = g.first; c < (g.part == 2 ? 0 : g.width); c += n * a.lanes) {
    load_columns<type, n>(a.x, g.x + c, x), load_columns<type, n>(a.dy, g.y + c, dy);
    head_factors<type, n>(a, g.part, c, w);
    GPU_UNROLL
    for (int j = 0; j < n; ++j) projection += dy[j] * w[j] * x[j];
  }
  projection = lanes_sum(projection, a.lanes) * inverse / static_cast<float>(g.width);
  const View& to = g.part == 2 ? a.value : a.dx;
  for (int c = g.first; c < g.width; c += n * a.lanes) {
    GPU_UNROLL
    for (int j = 0; j < n; ++j) old[j] = 0;
    if (a.accumulate) load_columns<type, n>(to, g.x + c, old);
    load_columns<type, n>(a.dy, g.y + c, dy);
    if (g.part < 2) {
      load_columns<type, n>(a.x, g.x + c, x);
      head_factors<type, n>(a, g.part, c, w);
      GPU_UNROLL
      for (int j = 0; j < n; ++j) dy[j] = inverse * (dy[j] * w[j] - x[j] * inverse * projection);
    }
    GPU_UNROLL
    for (int j = 0; j < n; ++j) dy[j] += old[j];
    store_columns<type, n>(to, g.x + c, dy);
  }
}
template <Type type>
GPU_FUNCTION void head_norm_forward_packs(const HeadNormArgs& a) {
  head_norm_forward_in<type, kPack<type>>(a);
}
template <Type type>
GPU_FUNCTION void head_norm_backward_packs(const HeadNormArgs& a) {
  head_norm_backward_in<type, kPack<type>>(a);
}
GPU_FUNCTION bool heads_in_packs(const HeadNormArgs& a) {
  const Type type = a.x.type;
  if (!has_packs(type)) return false;
  const int n = pack_of(type);
  for (const View* array : {&a.x, &a.value, &a.weights[0], &a.weights[1], &a.y, &a.dy, &a.dx})
    if (!packed(*array, type)) return false;
  return a.width % n == 0 && a.values % n == 0 && a.widths[0] % n == 0 && a.widths[1] % n == 0;
}

GPU_KERNEL head_norm_forward(const HeadNormArgs a) {
  if (heads_in_packs(a)) {
    RUN_BODY(a.x.type, head_norm_forward_packs, a);
    return;
  }
  head_norm_forward_in<Type::F32, 1>(a);
}
GPU_KERNEL head_norm_backward(const HeadNormArgs a) {
  if (heads_in_packs(a)) {
    RUN_BODY(a.x.type, head_norm_backward_packs, a);
    return;
  }
  head_norm_backward_in<Type::F32, 1>(a);
}

// A warp has 32 columns (with packs 32 packs of columns) of the rows and groups w, w + 8, ... of a chunk. Reads 4 bytes per element in
// bf16; bound by memory.
template <Type type, int n>
GPU_FUNCTION void head_weights_in(const HeadWeightArgs& a, GPU_SHARED_VIEW(float, kThreads* kWidest) parts) {
  const int column = n * (static_cast<int>(block()) * kWarp + lane());
  const std::int64_t first = block_y() * a.rows_of_chunk;
  const std::int64_t end = first + a.rows_of_chunk < a.rows ? first + a.rows_of_chunk : a.rows;
  const int count = column < a.columns ? static_cast<int>(end - first) * a.groups : 0;
  float sum[n], x[n], dy[n];
  GPU_UNROLL
  for (int j = 0; j < n; ++j) sum[j] = 0;
  for (int i = warp(); i < count; i += warps()) {
    const int line = i / a.groups, g = i - line * a.groups;
    const std::int64_t row = first + line, at = a.begin + g * a.columns + column;
    load_columns<type, n>(a.dy, row * a.dy_width + at, dy), load_columns<type, n>(a.x, row * a.x_width + at, x);
    const float inverse = load(a.stats, row * a.all + a.first + g);
    GPU_UNROLL
    for (int j = 0; j < n; ++j) sum[j] += dy[j] * x[j] * inverse;
  }
  GPU_UNROLL
  for (int j = 0; j < n; ++j) parts[(warp() * n + j) * kWarp + lane()] = sum[j];
  GPU_BARRIER();
  const int own = thread() / n, mine = static_cast<int>(block()) * kWarp * n + thread();  // a thread for each column
  if (own >= kWarp || mine >= a.columns) return;
  float total = 0;
  for (int w = 0; w < warps(); ++w) total += parts[(w * n + thread() % n) * kWarp + own];
  store(a.sums, block_y() * a.columns + mine, total);
}
template <Type type>
GPU_FUNCTION void head_weights_packs(const HeadWeightArgs& a, GPU_SHARED_VIEW(float, kThreads* kWidest) parts) {
  head_weights_in<type, kPack<type>>(a, parts);
}

GPU_KERNEL head_norm_weights(const HeadWeightArgs a) {
  GPU_SHARED(float, parts, kThreads* kWidest);
  if (a.packed) {
    RUN_BODY(a.x.type, head_weights_packs, a, parts);
    return;
  }
  head_weights_in<Type::F32, 1>(a, parts);
}

// The element of x, or of `shared`, that lies at element c of a row of y.
struct LatentPlace {
  bool shared;
  int at;
};
GPU_FUNCTION LatentPlace latent_place(const LatentHeadsArgs& a, int c) {
  const int key = a.plain + a.rotated, keys = a.heads * key;
  if (c >= keys) return {false, a.heads * a.plain + c - keys};
  const int head = c / key, i = c - head * key;
  return i < a.plain ? LatentPlace{false, head * a.plain + i} : LatentPlace{true, i - a.plain};
}
// A thread block per row. Per element of a row of y in bf16, it reads 2 bytes and writes 2; bound by memory.
template <Type type, int n>
GPU_FUNCTION void latent_heads_in(const LatentHeadsArgs& a) {
  const int key = a.plain + a.rotated, width = a.heads * (key + a.value), own = a.heads * (a.plain + a.value);
  const std::int64_t row = block(), x = row * own, y = row * width, shared = row * a.rotated;
  float v[n], old[n];
  for (int c = n * thread(); c < width; c += n * threads()) {
    const LatentPlace place = latent_place(a, c);
    if (a.back) {
      if (place.shared) continue;  // summed over the heads below
      GPU_UNROLL
      for (int j = 0; j < n; ++j) old[j] = 0;
      if (a.accumulate) load_columns<type, n>(a.x, x + place.at, old);
      load_columns<type, n>(a.y, y + c, v);
      GPU_UNROLL
      for (int j = 0; j < n; ++j) v[j] += old[j];
      store_columns<type, n>(a.x, x + place.at, v);
    } else {
      if (place.shared)
        load_columns<type, n>(a.shared, shared + place.at, v);
      else
        load_columns<type, n>(a.x, x + place.at, v);
      store_columns<type, n>(a.y, y + c, v);
    }
  }
  for (int c = n * thread(); a.back && c < a.rotated; c += n * threads()) {
    GPU_UNROLL
    for (int j = 0; j < n; ++j) old[j] = 0;
    if (a.accumulate) load_columns<type, n>(a.shared, shared + c, old);
    for (int head = 0; head < a.heads; ++head) {
      load_columns<type, n>(a.y, y + head * key + a.plain + c, v);
      GPU_UNROLL
      for (int j = 0; j < n; ++j) old[j] += v[j];
    }
    store_columns<type, n>(a.shared, shared + c, old);
  }
}
template <Type type>
GPU_FUNCTION void latent_heads_packs(const LatentHeadsArgs& a) {
  latent_heads_in<type, kPack<type>>(a);
}
GPU_KERNEL latent_heads(const LatentHeadsArgs a) {
  const Type type = a.x.type;
  if (has_packs(type) && packed(a.x, type) && packed(a.shared, type) && packed(a.y, type) && a.plain % pack_of(type) == 0 &&
      a.rotated % pack_of(type) == 0 && a.value % pack_of(type) == 0) {
    RUN_BODY(type, latent_heads_packs, a);
    return;
  }
  latent_heads_in<Type::F32, 1>(a);
}

}  // namespace foreshard::gpu
