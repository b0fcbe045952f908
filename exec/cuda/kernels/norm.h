// LayerNorm (Ba et al. 2016) and RMSNorm (Zhang and Sennrich 2019): with packs if rows allow it, else one warp per row.
// Reference: exec/host/host_norm.cpp.
#pragma once

#include "exec/cuda/kernels/register_row.h"

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

// Reads 2 bytes and writes 2 per element in bf16; the row is in registers, weights come from the cache; bound by memory.
template <Type type>
GPU_FUNCTION void norm_forward_packs(const NormArgs& a, GPU_SHARED_VIEW(float, kMostWarps) parts) {
  constexpr int n = kPack<type>;
  const RegisterRow<type> row(a.rows, a.h, a.warps_of_row);
  const float over = 1.0f / static_cast<float>(a.h);
  Quad32 held[kHeldPacks];
  float x[n], mean = 0, squares = 0;
  each_pack(row, [&](int k) {
    held[k] = load_quad<type>(a.x, row.at(k));
    unpack<type>(held[k], x);
    GPU_UNROLL
    for (int j = 0; j < n; ++j) mean += x[j];
  });
  mean = a.centred ? row_fold(mean, false, a.warps_of_row, parts) * over : 0.0f;
  each_pack(row, [&](int k) {
    unpack<type>(held[k], x);
    GPU_UNROLL
    for (int j = 0; j < n; ++j) squares += (x[j] - mean) * (x[j] - mean);
  });
  const float inverse = 1.0f / sqrtf(row_fold(squares, false, a.warps_of_row, parts) * over + a.eps);
  each_pack(row, [&](int k) {
    float w[n], b[n];
    GPU_UNROLL
    for (int j = 0; j < n; ++j) b[j] = 0;
    unpack<type>(held[k], x);
    load_pack<type>(a.weight, row.column(k), w);
    if (a.centred) load_pack<type>(a.bias, row.column(k), b);
    GPU_UNROLL
    for (int j = 0; j < n; ++j) x[j] = (x[j] - mean) * inverse * (a.one + w[j]) + b[j];
    store_pack<type>(a.y, row.at(k), x);
  });
}

GPU_KERNEL norm_forward(const NormArgs a) {
  GPU_SHARED(float, parts, kMostWarps);
  if (a.warps_of_row > 0) {
    RUN_BODY(a.x.type, norm_forward_packs, a, parts);
    return;
  }
  const std::int64_t row = block() * warps() + warp(), at = row * a.h;
  if (row >= a.rows) return;
  const RowStatistics s = row_statistics(a.x, at, a.h, a.eps, a.centred);
  float x[4], w[4], b[4] = {0, 0, 0, 0};
  for (std::int64_t c = 4 * lane(); c < a.h; c += 4 * kWarp) {
    const int count = up_to_four(a.h - c);
    load4(a.x, at + c, count, x);
    load4(a.weight, c, count, w);
    if (a.centred) load4(a.bias, c, count, b);
    for (int j = 0; j < count; ++j) x[j] = (x[j] - s.mean) * s.inverse * (a.one + w[j]) + b[j];
    store4(a.y, at + c, count, x);
  }
}

// With u = (x - mean) inverse and g = dy (one + w): dx = inverse (g - mean(g) - u mean(g u)). For RMSNorm, mean = 0 and the term mean(g) is
// absent. Four passes over a row; the later ones read it from the cache. Reads 4 bytes and writes 2 per element in bf16; bound by memory.
GPU_KERNEL norm_input_grad(const NormGradArgs a) {
  const std::int64_t row = block() * warps() + warp(), at = row * a.h;
  if (row >= a.rows) return;
  const RowStatistics s = row_statistics(a.x, at, a.h, a.eps, a.centred);
  if (lane() == 0 && a.stats.data) {  // the gradients of the weights need them
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
      const float g = dy[j] * (a.one + w[j]);
      sum += g;
      projection += g * ((x[j] - s.mean) * s.inverse);
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
      x[j] = old[j] + s.inverse * (dy[j] * (a.one + w[j]) - sum - u * projection);
    }
    store4(a.dx, at + c, count, x);
  }
}

// The gradient of the input and the sums for the gradients of the weights in one pass (norm_backward_packs below). Block b processes rows
// b, b + blocks, ...; each thread has up to kColumnPacks packs of every row. The next row is loaded while the current one is summed. A
// second launch adds the sums of the blocks. Reads 4 bytes and writes 2 per element in bf16; bound by memory.
constexpr int kSumsAtOnce = 3;

// Sums `count` numbers over the thread block, with the same bits in every thread. `parts` has two halves, which alternate between calls
// (`turn`), so that one barrier per call is enough.
template <int count>
GPU_FUNCTION void block_sums(float* x, int& turn, GPU_SHARED_VIEW(float, 2 * kSumsAtOnce * kMostWarps) parts) {
  turn ^= 1;
  GPU_UNROLL
  for (int i = 0; i < count; ++i) {
    x[i] = warp_sum(x[i]);
    if (lane() == 0) parts[(turn * kSumsAtOnce + i) * kMostWarps + warp()] = x[i];
  }
  GPU_BARRIER();
  GPU_UNROLL
  for (int i = 0; i < count; ++i) {
    x[i] = parts[(turn * kSumsAtOnce + i) * kMostWarps];
    for (int w = 1; w < warps(); ++w) x[i] += parts[(turn * kSumsAtOnce + i) * kMostWarps + w];
  }
}

template <Type type>
struct RowPacks {
  Quad32 x[kColumnPacks], dy[kColumnPacks];
};
template <Type type>
GPU_FUNCTION RowPacks<type> row_packs(const NormGradArgs& a, int row) {
  RowPacks<type> of = {};
  const int h = static_cast<int>(a.h);
  GPU_UNROLL
  for (int k = 0; k < kColumnPacks; ++k) {
    const int c = kPack<type> * (k * threads() + thread());
    if (c >= h || row >= a.rows) continue;
    of.x[k] = load_quad<type>(a.x, row * h + c), of.dy[k] = load_quad<type>(a.dy, row * h + c);
  }
  return of;
}

template <Type type>
GPU_FUNCTION void norm_backward_packs(const NormGradArgs& a, GPU_SHARED_VIEW(float, 2 * kSumsAtOnce * kMostWarps) parts) {
  constexpr int n = kPack<type>;
  const int h = static_cast<int>(a.h);
  const float over = 1.0f / static_cast<float>(a.h);
  float dw[kColumnPacks][n], db[kColumnPacks][n];
  GPU_UNROLL
  for (int k = 0; k < kColumnPacks; ++k) GPU_UNROLL
  for (int j = 0; j < n; ++j) dw[k][j] = 0, db[k][j] = 0;
  int turn = 0;
  RowPacks<type> next = row_packs<type>(a, static_cast<int>(block()));
  for (int row = static_cast<int>(block()); row < a.rows; row += static_cast<int>(blocks())) {
    const RowPacks<type> now = next;
    next = row_packs<type>(a, row + static_cast<int>(blocks()));
    float mean[1] = {0}, sums[kSumsAtOnce] = {0, 0, 0}, x[n], dy[n], w[n];  // of (x - mean)^2, g, g (x - mean)
    if (a.centred) {
      GPU_UNROLL
      for (int k = 0; k < kColumnPacks; ++k) {
        unpack<type>(now.x[k], x);  // zeros beyond the end of the row
        GPU_UNROLL
        for (int j = 0; j < n; ++j) mean[0] += x[j];
      }
      block_sums<1>(mean, turn, parts);
      mean[0] *= over;
    }
    GPU_UNROLL
    for (int k = 0; k < kColumnPacks; ++k) {
      const int c = n * (k * threads() + thread());
      if (c >= h) continue;
      unpack<type>(now.x[k], x), unpack<type>(now.dy[k], dy), load_pack<type>(a.weight, c, w);
      GPU_UNROLL
      for (int j = 0; j < n; ++j) {
        const float apart = x[j] - mean[0], g = dy[j] * (a.one + w[j]);
        sums[0] += apart * apart, sums[1] += g, sums[2] += g * apart;
      }
    }
    block_sums<kSumsAtOnce>(sums, turn, parts);
    const float inverse = 1.0f / sqrtf(sums[0] * over + a.eps);
    const float sum = a.centred ? sums[1] * over : 0.0f, projection = sums[2] * over * inverse;
    GPU_UNROLL
    for (int k = 0; k < kColumnPacks; ++k) {
      const int c = n * (k * threads() + thread());
      if (c >= h) continue;
      float dx[n];
      GPU_UNROLL
      for (int j = 0; j < n; ++j) dx[j] = 0;
      unpack<type>(now.x[k], x), unpack<type>(now.dy[k], dy), load_pack<type>(a.weight, c, w);
      if (a.accumulate && a.dx.data) load_pack<type>(a.dx, row * h + c, dx);
      GPU_UNROLL
      for (int j = 0; j < n; ++j) {
        const float u = (x[j] - mean[0]) * inverse;
        dw[k][j] += dy[j] * u, db[k][j] += dy[j];
        dx[j] += inverse * (dy[j] * (a.one + w[j]) - sum - u * projection);
      }
      if (a.dx.data) store_pack<type>(a.dx, row * h + c, dx);
    }
  }
  GPU_UNROLL
  for (int k = 0; k < kColumnPacks; ++k) {
    const int c = n * (k * threads() + thread());
    if (c >= h) continue;
    const std::int64_t at = block() * h + c;
    store_pack<Type::F32, n>(a.sums, at, dw[k]);
    if (a.centred) store_pack<Type::F32, n>(a.sums, at + blocks() * h, db[k]);
  }
}

GPU_KERNEL norm_backward_packed(const NormGradArgs a) {
  GPU_SHARED(float, parts, 2 * kSumsAtOnce * kMostWarps);
  RUN_BODY(a.x.type, norm_backward_packs, a, parts);
}

}  // namespace foreshard::gpu
