// A matrix product for each expert of a mixture of experts: on tensor cores for bf16 and sizes of whole packs, else on the vector units.
// Reference: exec/host/host_experts.cpp.
#pragma once

#include "exec/cuda/expert_args.h"
#include "exec/cuda/kernels/flash.h"

namespace foreshard::gpu {

// ---- vector units -------------------------------------------------------------------------------------------------------------------

inline constexpr int kGroupedTile = 16;

// The first row of expert e among those of source s.
GPU_FUNCTION std::int64_t first_row(const GroupedArgs& a, std::int64_t s, int e) {
  std::int64_t row = 0;
  for (int before = 0; before < e; ++before) row += load_integer(a.counts, s * a.experts + before);
  return row;
}

// A thread block of 16 x 16 threads per tile of y. A tile whose rows belong to several experts is computed once for each. Reads the rows of
// x once per 16 columns and the weights of an expert once per 16 rows; bound by fp32 arithmetic on the vector units.
GPU_KERNEL grouped_rows(const GroupedArgs a) {
  GPU_SHARED(float, left, kGroupedTile* kGroupedTile);
  GPU_SHARED(float, right, kGroupedTile* kGroupedTile);
  const int row_in = thread() / kGroupedTile, column_in = thread() % kGroupedTile;
  const std::int64_t tiles = (a.room + kGroupedTile - 1) / kGroupedTile, source = block_y() / tiles;
  const std::int64_t first = block_y() % tiles * kGroupedTile, row = first + row_in, at = source * a.room + row;
  const std::int64_t column = block() * kGroupedTile + column_in;
  const bool here = row < a.room && column < a.columns;
  float sum = 0;
  std::int64_t begin = 0;
  for (int e = 0; e < a.experts; ++e) {
    const std::int64_t end = begin + load_integer(a.counts, source * a.experts + e);
    const bool meets = begin < first + kGroupedTile && end > first, mine = row >= begin && row < end;
    for (int i0 = 0; meets && i0 < a.inner; i0 += kGroupedTile) {
      const int i = i0 + column_in, k = i0 + row_in;
      left[thread()] = mine && row < a.room && i < a.inner ? load(a.x, at * a.x_width + a.x_first + i) : 0.0f;
      right[thread()] = k < a.inner && column < a.columns ? load(a.w, e * a.size + k * a.by_row + column * a.by_column) : 0.0f;
      GPU_BARRIER();
      for (int n = 0; n < kGroupedTile; ++n) sum += left[row_in * kGroupedTile + n] * right[n * kGroupedTile + column_in];
      GPU_BARRIER();
    }
    if (mine && here && a.bias.data) sum += load(a.bias, e * a.columns + column);
    begin = end;
  }
  const std::int64_t to = at * a.y_width + a.y_first + column;
  if (here) store(a.y, to, old_value(a.accumulate, a.y, to) + sum);
}

// A thread block of 16 x 16 threads per tile of an expert's weights goes through the rows of the expert. Reads the rows of x and y once per
// 16 columns of the other; bound by fp32 arithmetic on the vector units.
GPU_KERNEL grouped_weights(const GroupedArgs a) {
  GPU_SHARED(float, left, kGroupedTile* kGroupedTile);
  GPU_SHARED(float, right, kGroupedTile* kGroupedTile);
  const int row_in = thread() / kGroupedTile, column_in = thread() % kGroupedTile;
  const std::int64_t tiles = (a.inner + kGroupedTile - 1) / kGroupedTile;
  const auto e = static_cast<int>(block_y() / tiles);
  const std::int64_t i0 = block_y() % tiles * kGroupedTile, column0 = block() * kGroupedTile;
  const std::int64_t i = i0 + row_in, column = column0 + column_in;
  float sum = 0, column_sum = 0;
  for (int s = 0; s < a.sources; ++s) {
    const std::int64_t first = first_row(a, s, e), count = load_integer(a.counts, s * static_cast<std::int64_t>(a.experts) + e);
    for (std::int64_t r0 = 0; r0 < count; r0 += kGroupedTile) {
      const std::int64_t row = r0 + row_in, at = s * a.room + first + row;
      const std::int64_t x_at = i0 + column_in;
      left[thread()] = row < count && x_at < a.inner ? load(a.x, at * a.x_width + a.x_first + x_at) : 0.0f;
      right[thread()] = row < count && column < a.columns ? load(a.y, at * a.y_width + a.y_first + column) : 0.0f;
      GPU_BARRIER();
      for (int n = 0; n < kGroupedTile; ++n) {
        const float y = right[n * kGroupedTile + column_in];
        sum += left[n * kGroupedTile + row_in] * y;
        column_sum += y;
      }
      GPU_BARRIER();
    }
  }
  const std::int64_t to = e * a.size + i * a.by_row + column * a.by_column,
                     bias = e * static_cast<std::int64_t>(a.columns) + column;
  if (i < a.inner && column < a.columns) store(a.w, to, old_value(a.accumulate, a.w, to) + sum);
  if (a.bias.data && i == 0 && column < a.columns) store(a.bias, bias, old_value(a.accumulate, a.bias, bias) + column_sum);
}

// ---- tensor cores -------------------------------------------------------------------------------------------------------------------

// A thread block of four warps computes 64 x 64 results, each warp 16 rows of them. Both factors are in shared memory as [row or column][32
// elements of the sum]; fragments as in flash.h.
constexpr int kSide = 64, kInner = 32, kProductWords = kSide * tile_stride(kInner);

// A part of a matrix: element (r, c) is at index at + r step + c. Rows before `begin` or from `end` on, and columns from `columns` on,
// count as 0.
struct MatrixPart {
  const View& from;
  std::int64_t at, step, begin, end, columns;
};
// Rows are those of the tile; `columns` is a multiple of 8.
GPU_FUNCTION void load_part(const MatrixPart& part, GPU_SHARED_VIEW(std::uint32_t, kProductWords) tile) {
  for (int i = thread(); i < kSide * (kInner / 8); i += kFlashThreads) {
    const int row = i / (kInner / 8), c = i % (kInner / 8) * 8, to = row * tile_stride(kInner) + c / 2;
    Quad32 words = {0, 0, 0, 0};
    if (row >= part.begin && row < part.end && c < part.columns) words = load_words(part.from, part.at + row * part.step + c);
#ifdef FORESHARD_EMULATED
    tile[to] = words.x, tile[to + 1] = words.y, tile[to + 2] = words.z, tile[to + 3] = words.w;
#else
    *reinterpret_cast<Quad32*>(tile + to) = words;
#endif
  }
}
// Columns are the rows of the tile; `columns` is even.
GPU_FUNCTION void load_transposed_part(const MatrixPart& part, GPU_SHARED_VIEW(std::uint32_t, kProductWords) tile) {
  for (int i = thread(); i < (kInner / 2) * (kSide / 2); i += kFlashThreads) {
    const TransposedPlace at = transposed_place<kSide>(i);
    const int row = 2 * at.pair;
    const bool inside = at.column < part.columns;
    const std::int64_t from = part.at + row * part.step + at.column;
    const std::uint32_t upper = inside && row < part.end ? load_word(part.from, from) : 0;
    const std::uint32_t lower = inside && row + 1 < part.end ? load_word(part.from, from + part.step) : 0;
    store_transposed<kInner, kProductWords>(upper, lower, at, tile);
  }
}
// d += left right^T over the tiles' 32 elements.
GPU_FUNCTION void add_product(GPU_SHARED_VIEW(std::uint32_t, kProductWords) left,
                              GPU_SHARED_VIEW(std::uint32_t, kProductWords) right, float (*d)[4]) {
  std::uint32_t a[kInner / 16][4];
  GPU_UNROLL
  for (int k = 0; k < kInner / 16; ++k) GPU_UNROLL
  for (int w = 0; w < 4; ++w) {
    const int row = warp() * 16 + lane() / 4 + w % 2 * 8;
    a[k][w] = left[row * tile_stride(kInner) + k * 8 + lane() % 4 + w / 2 * 4];
  }
  multiply_tile<kInner, kProductWords>(d, kSide / 8, a, right);
}

// As grouped_rows. Reads the rows of x once per 64 columns and the weights of an expert once per 64 rows, from the L2 cache; bound by it.
GPU_KERNEL grouped_rows_tiled(const GroupedArgs a) {
  GPU_SHARED(std::uint32_t, left, kProductWords);
  GPU_SHARED(std::uint32_t, right, kProductWords);
  const std::int64_t tiles = (a.room + kSide - 1) / kSide, source = block_y() / tiles, first = block_y() % tiles * kSide;
  const std::int64_t top = source * a.room + first, column0 = block() * kSide, row = first + warp() * 16 + lane() / 4;
  float d[kSide / 8][4] = {};
  int own[2] = {-1, -1};  // experts of the rows of this thread
  std::int64_t begin = 0;
  for (int e = 0; e < a.experts; ++e) {
    const std::int64_t end = begin + load_integer(a.counts, source * a.experts + e);
    for (int half = 0; half < 2; ++half)
      if (row + 8 * half >= begin && row + 8 * half < end) own[half] = e;
    const bool meets = begin < first + kSide && end > first && end > begin;
    for (int k = 0; meets && k < a.inner; k += kInner) {
      GPU_BARRIER();  // the tiles before have been read
      load_part({a.x, top * a.x_width + a.x_first + k, a.x_width, begin - first, end - first, a.inner - k}, left);
      const std::int64_t w = e * a.size + k * a.by_row + column0 * a.by_column;
      if (a.by_row == 1)
        load_part({a.w, w, a.by_column, 0, a.columns - column0, a.inner - k}, right);
      else
        load_transposed_part({a.w, w, a.by_row, 0, a.inner - k, a.columns - column0}, right);
      GPU_BARRIER();
      add_product(left, right, d);
    }
    begin = end;
  }
  GPU_UNROLL
  for (int n = 0; n < kSide / 8; ++n) GPU_UNROLL
  for (int j = 0; j < 4; ++j) {
    const std::int64_t column = column0 + n * 8 + lane() % 4 * 2 + j % 2, r = row + 8 * (j / 2);
    if (r >= a.room || column >= a.columns) continue;
    const std::int64_t to = (source * a.room + r) * a.y_width + a.y_first + column;
    const int e = own[j / 2];
    const float bias = a.bias.data && e >= 0 ? load(a.bias, static_cast<std::int64_t>(e) * a.columns + column) : 0.0f;
    store(a.y, to, old_value(a.accumulate, a.y, to) + d[n][j] + bias);
  }
}

// As grouped_weights, with by_column = 1. `bias` sums y, or x if `swapped`. Reads the rows of x and y once per 64 columns of the other;
// bound by the L2 cache.
GPU_KERNEL grouped_weights_tiled(const GroupedArgs a) {
  GPU_SHARED(std::uint32_t, left, kProductWords);
  GPU_SHARED(std::uint32_t, right, kProductWords);
  const std::int64_t tiles = (a.inner + kSide - 1) / kSide, i0 = block_y() % tiles * kSide, column0 = block() * kSide;
  const auto e = static_cast<int>(block_y() / tiles);
  const bool sums = a.bias.data && (a.swapped ? column0 : i0) == 0 && thread() < kSide;
  float d[kSide / 8][4] = {}, total = 0;
  for (int s = 0; s < a.sources; ++s) {
    const std::int64_t count = load_integer(a.counts, s * static_cast<std::int64_t>(a.experts) + e);
    const std::int64_t top = s * a.room + first_row(a, s, e);
    for (std::int64_t r = 0; r < count; r += kInner) {
      GPU_BARRIER();  // the tiles before have been read
      load_transposed_part({a.x, (top + r) * a.x_width + a.x_first + i0, a.x_width, 0, count - r, a.inner - i0}, left);
      load_transposed_part({a.y, (top + r) * a.y_width + a.y_first + column0, a.y_width, 0, count - r, a.columns - column0},
                           right);
      GPU_BARRIER();
      add_product(left, right, d);
      for (int w = 0; sums && w < kInner / 2; ++w) {
        const std::uint32_t word = (a.swapped ? left : right)[thread() * tile_stride(kInner) + w];
        total += bits_to_float(word << 16) + bits_to_float(word & 0xFFFF0000u);
      }
    }
  }
  GPU_UNROLL
  for (int n = 0; n < kSide / 8; ++n) GPU_UNROLL
  for (int j = 0; j < 4; ++j) {
    const std::int64_t column = column0 + n * 8 + lane() % 4 * 2 + j % 2, i = i0 + warp() * 16 + lane() / 4 + 8 * (j / 2);
    const std::int64_t to = e * a.size + i * a.by_row + column;
    if (i < a.inner && column < a.columns) store(a.w, to, old_value(a.accumulate, a.w, to) + d[n][j]);
  }
  const std::int64_t summed = (a.swapped ? i0 : column0) + thread(), width = a.swapped ? a.inner : a.columns;
  if (sums && summed < width) store(a.bias, e * width + summed, old_value(a.accumulate, a.bias, e * width + summed) + total);
}

}  // namespace foreshard::gpu
