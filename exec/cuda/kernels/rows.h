// A warp per row: norms and softmax; column sums over rows in a fixed order.
#pragma once

#include "exec/cuda/kernels/words.h"

namespace foreshard::gpu {

struct RowStatistics {
  float mean, inverse;  // inverse of the standard deviation (root mean square)
};

GPU_FUNCTION RowStatistics row_statistics(const View& x, std::int64_t at, std::int64_t h, float eps, bool centred) {
  float mean = 0, squares = 0, v[4];
  if (centred) {
    for (std::int64_t c = 4 * lane(); c < h; c += 4 * kWarp) {
      load4(x, at + c, up_to_four(h - c), v);
      mean += v[0] + v[1] + v[2] + v[3];
    }
    mean = warp_sum(mean) / static_cast<float>(h);
  }
  for (std::int64_t c = 4 * lane(); c < h; c += 4 * kWarp) {
    const int count = up_to_four(h - c);
    load4(x, at + c, count, v);
    for (int j = 0; j < count; ++j) squares += (v[j] - mean) * (v[j] - mean);
  }
  return {mean, 1.0f / sqrtf(warp_sum(squares) / static_cast<float>(h) + eps)};
}

GPU_KERNEL norm_forward(const NormArgs a) {
  const std::int64_t row = block() * warps() + warp(), at = row * a.h;
  if (row >= a.rows) return;
  const RowStatistics s = row_statistics(a.x, at, a.h, a.eps, a.centred);
  float x[4], w[4], b[4] = {0, 0, 0, 0};
  for (std::int64_t c = 4 * lane(); c < a.h; c += 4 * kWarp) {
    const int count = up_to_four(a.h - c);
    load4(a.x, at + c, count, x);
    load4(a.weight, c, count, w);
    if (a.centred) load4(a.bias, c, count, b);
    for (int j = 0; j < count; ++j) x[j] = (x[j] - s.mean) * s.inverse * w[j] + b[j];
    store4(a.y, at + c, count, x);
  }
}

// With u = (x - mean) inverse and g = dy w:  dx = inverse (g - mean(g) - u mean(g u)); without the mean for RMSNorm.
GPU_KERNEL norm_input_grad(const NormGradArgs a) {
  const std::int64_t row = block() * warps() + warp(), at = row * a.h;
  if (row >= a.rows) return;
  const RowStatistics s = row_statistics(a.x, at, a.h, a.eps, a.centred);
  if (lane() == 0) {
    store(a.stats, 2 * row, s.mean);
    store(a.stats, 2 * row + 1, s.inverse);
  }
  if (!a.dx.data) return;
  float sum = 0, projection = 0, x[4], dy[4], w[4], old[4] = {0, 0, 0, 0};
  for (std::int64_t c = 4 * lane(); c < a.h; c += 4 * kWarp) {
    const int count = up_to_four(a.h - c);
    load4(a.x, at + c, count, x);
    load4(a.dy, at + c, count, dy);
    load4(a.weight, c, count, w);
    for (int j = 0; j < count; ++j) {
      sum += dy[j] * w[j];
      projection += dy[j] * w[j] * ((x[j] - s.mean) * s.inverse);
    }
  }
  sum = a.centred ? warp_sum(sum) / static_cast<float>(a.h) : 0.0f;
  projection = warp_sum(projection) / static_cast<float>(a.h);
  for (std::int64_t c = 4 * lane(); c < a.h; c += 4 * kWarp) {
    const int count = up_to_four(a.h - c);
    load4(a.x, at + c, count, x);
    load4(a.dy, at + c, count, dy);
    load4(a.weight, c, count, w);
    if (a.accumulate) load4(a.dx, at + c, count, old);
    for (int j = 0; j < count; ++j) {
      const float u = (x[j] - s.mean) * s.inverse;
      x[j] = old[j] + s.inverse * (dy[j] * w[j] - sum - u * projection);
    }
    store4(a.dx, at + c, count, x);
  }
}

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

// A block has 32 columns and a chunk of rows; warp w takes rows w, w + 8, ... of the chunk.
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

GPU_KERNEL softmax_forward(const SoftmaxArgs a) {
  const std::int64_t row = block() * warps() + warp(), at = row * a.columns;
  if (row >= a.rows) return;
  const std::int64_t visible = a.causal ? row % a.columns + 1 : a.columns;
  float largest = -INFINITY, sum = 0;
  for (std::int64_t c = lane(); c < visible; c += kWarp) largest = fmaxf(largest, load(a.x, at + c));
  largest = warp_maximum(largest);
  for (std::int64_t c = lane(); c < visible; c += kWarp) sum += expf(a.scale * (load(a.x, at + c) - largest));
  const float inverse = 1.0f / warp_sum(sum);
  for (std::int64_t c = lane(); c < a.columns; c += kWarp)
    store(a.y, at + c, c < visible ? expf(a.scale * (load(a.x, at + c) - largest)) * inverse : 0.0f);
}

GPU_KERNEL softmax_backward(const SoftmaxArgs a) {
  const std::int64_t row = block() * warps() + warp(), at = row * a.columns;
  if (row >= a.rows) return;
  float sum = 0;
  for (std::int64_t c = lane(); c < a.columns; c += kWarp) sum += load(a.x, at + c) * load(a.dp, at + c);
  sum = warp_sum(sum);
  for (std::int64_t c = lane(); c < a.columns; c += kWarp)
    store(a.y, at + c, old_value(a.accumulate, a.y, at + c) + a.scale * load(a.x, at + c) * (load(a.dp, at + c) - sum));
}

}  // namespace foreshard::gpu
