// Sums over the rows of a matrix, in a fixed order.
// References: exec/host/host_add.cpp, host_matmul.cpp.
#pragma once

#include "exec/cuda/kernels/packs.h"

namespace foreshard::gpu {

GPU_FUNCTION float column_term(const ColumnSumArgs& a, std::int64_t row, std::int64_t column) {
  const std::int64_t at = row * a.columns + column;
  const float x = load(a.x, at);
  switch (a.factor) {
    case Factor::One: return x;
    case Factor::Mask: return load_flag(a.mask, at) ? x * a.scale : 0.0f;
    case Factor::Normalised: return x * ((load(a.other, at) - load(a.stats, 2 * row)) * load(a.stats, 2 * row + 1));
  }
  return x;
}

// A thread block sums 32 columns of a chunk of rows; its warp w sums rows w, w + 8, ... of the chunk. Reads 2 bytes per element in bf16
// (with a mask 3, normalised 4); bound by memory.
GPU_KERNEL column_sums(const ColumnSumArgs a) {
  GPU_SHARED(float, parts, kThreads);
  const std::int64_t column = block() * kWarp + lane();
  const std::int64_t first = block_y() * a.rows_of_chunk;
  const std::int64_t end = first + a.rows_of_chunk < a.rows ? first + a.rows_of_chunk : a.rows;
  float sum = 0;
  if (column < a.columns)
    for (std::int64_t row = first + warp(); row < end; row += warps()) sum += column_term(a, row, column);
  parts[thread()] = sum;
  GPU_BARRIER();
  if (warp() != 0 || column >= a.columns) return;
  for (int w = 1; w < warps(); ++w) sum += parts[w * kWarp + lane()];
  const std::int64_t at = block_y() * a.columns + column;
  store(a.out, at, old_value(a.accumulate, a.out, at) + sum);
}

// A thread block sums 32 packs of columns of a chunk of rows; its warp w sums rows w, w + 8, ... of the chunk. Reads 2 bytes per element in
// bf16 (with a mask 3); bound by memory.
template <Type type, bool masked>
GPU_FUNCTION void column_sums_packs(const ColumnSumArgs& a, GPU_SHARED_VIEW(float, kThreads* kWidest) parts) {
  constexpr int n = kPack<type>;
  const int columns = static_cast<int>(a.columns), column = n * (static_cast<int>(block()) * kWarp + lane());
  const int first = static_cast<int>(block_y() * a.rows_of_chunk);
  const int end = static_cast<int>(first + a.rows_of_chunk < a.rows ? first + a.rows_of_chunk : a.rows);
  float sum[n], x[n];
  GPU_UNROLL
  for (int j = 0; j < n; ++j) sum[j] = 0;
  if (column < columns) {
#ifndef FORESHARD_EMULATED
#pragma unroll 4
#endif
    for (int row = first + warp(); row < end; row += warps()) {
      load_pack<type>(a.x, row * columns + column, x);
      if constexpr (masked) {
        bool keep[n];
        load_flags<n>(a.mask, row * columns + column, keep);
        GPU_UNROLL
        for (int j = 0; j < n; ++j) x[j] = keep[j] ? x[j] * a.scale : 0.0f;
      }
      GPU_UNROLL
      for (int j = 0; j < n; ++j) sum[j] += x[j];
    }
  }
  GPU_UNROLL
  for (int j = 0; j < n; ++j) parts[(warp() * n + j) * kWarp + lane()] = sum[j];
  GPU_BARRIER();
  const int own = thread() / n, mine = static_cast<int>(block()) * kWarp * n + thread();  // a thread for each column
  if (own >= kWarp || mine >= columns) return;
  float total = 0;
  for (int w = 0; w < warps(); ++w) total += parts[(w * n + thread() % n) * kWarp + own];
  const std::int64_t at = block_y() * columns + mine;
  store(a.out, at, old_value(a.accumulate, a.out, at) + total);
}
template <Type type>
GPU_FUNCTION void column_sums_of(const ColumnSumArgs& a, GPU_SHARED_VIEW(float, kThreads* kWidest) parts) {
  if (a.factor == Factor::Mask) return column_sums_packs<type, true>(a, parts);
  return column_sums_packs<type, false>(a, parts);
}

GPU_KERNEL column_sums_packed(const ColumnSumArgs a) {
  GPU_SHARED(float, parts, kThreads* kWidest);
  RUN_BODY(a.x.type, column_sums_of, a, parts);
}

}  // namespace foreshard::gpu
