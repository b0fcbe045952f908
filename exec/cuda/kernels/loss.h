// Cross-entropy, and sums over many terms: losses, and norms of gradients.
// References: exec/host/host_cross_entropy.cpp, host_optimizer.cpp (norm of gradients).
#pragma once

#include "exec/cuda/kernels/loss_scale.h"
#include "exec/cuda/kernels/packs.h"

namespace foreshard::gpu {

constexpr float kLowest = -3.402823466e38f;  // instead of -infinity: a logit of -infinity minus this is not NaN

// Loads n logits from column c of a row on, as fp32 in registers; columns that are not classes give -infinity.
template <Type type, int n>
GPU_FUNCTION void load_logits(const CrossEntropyArgs& a, std::int64_t at, int c, float* x) {
  load_columns<type, n>(a.x, at + c, x);
  if (c + n <= a.used) return;
  GPU_UNROLL
  for (int j = 0; j < n; ++j)
    if (c + j >= a.used) x[j] = -INFINITY;  // no class: e^x = 0
}
// The maximum of the whole row, the same in every thread.
template <Type type, int n>
GPU_FUNCTION float logits_maximum(const CrossEntropyArgs& a, std::int64_t at, GPU_SHARED_VIEW(float, kMostWarps) parts) {
  float largest = -INFINITY, x[n];
  for (int c = n * thread(); c < a.used; c += n * threads()) {
    load_logits<type, n>(a, at, c, x);
    GPU_UNROLL
    for (int j = 0; j < n; ++j) largest = fmaxf(largest, x[j]);
  }
  return block_fold(largest, true, parts);
}

// terms[row] = log(sum of e^(x - max)) + max - x[target], y = e^(x - max) / sum. Maximum and sum are computed in one pass (online softmax,
// Milakov and Gimelshein 2018, algorithm 3), so the row is read twice, the second time from the L2 cache. Reads 2 bytes from memory and
// writes 2 per element in bf16; bound by memory.
template <Type type, int n>
GPU_FUNCTION void loss_of_row(const CrossEntropyArgs& a, GPU_SHARED_VIEW(float, kMostWarps) parts) {
  const std::int64_t row = block(), at = row * a.columns;
  // Read first, because y may be in place of x
  const float target = thread() == 0 ? load(a.x, at + load_integer(a.targets, row)) : 0.0f;
  float largest = kLowest, sum = 0, x[n];
  for (int c = n * thread(); c < a.used; c += n * threads()) {
    load_logits<type, n>(a, at, c, x);
    float now = x[0];
    GPU_UNROLL
    for (int j = 1; j < n; ++j) now = fmaxf(now, x[j]);
    if (now > largest) sum *= quick_exp(largest - now), largest = now;
    GPU_UNROLL
    for (int j = 0; j < n; ++j) sum += quick_exp(x[j] - largest);
  }
  const float of_all = block_fold(largest, true, parts);
  sum = block_fold(sum * quick_exp(largest - of_all), false, parts);
  const float inverse = 1.0f / sum;
  if (thread() == 0) store(a.terms, row, logf(sum) + (of_all - target));
  for (int c = n * thread(); c < a.columns; c += n * threads()) {
    load_logits<type, n>(a, at, c, x);
    GPU_UNROLL
    for (int j = 0; j < n; ++j) x[j] = quick_exp(x[j] - of_all) * inverse;
    store_columns<type, n>(a.y, at + c, x);
  }
}

// y = e^(x - maximum), sums[row] = {sum of the exponentials, logit of the target if this rank has its column, else 0}. Reads 2 bytes and
// writes 2 per element in bf16; bound by memory.
template <Type type, int n>
GPU_FUNCTION void exponentials_of_row(const CrossEntropyArgs& a, GPU_SHARED_VIEW(float, kMostWarps) parts) {
  const std::int64_t row = block(), at = row * a.columns, target = load_integer(a.targets, row) - a.first;
  const float hit = thread() == 0 && target >= 0 && target < a.used ? load(a.x, at + target) : 0.0f;
  const float largest = load(a.maxima, row);
  float sum = 0, x[n];
  for (int c = n * thread(); c < a.columns; c += n * threads()) {
    load_logits<type, n>(a, at, c, x);
    GPU_UNROLL
    for (int j = 0; j < n; ++j) x[j] = quick_exp(x[j] - largest), sum += x[j];
    store_columns<type, n>(a.y, at + c, x);
  }
  sum = block_fold(sum, false, parts);
  if (thread() != 0) return;
  store(a.sums, 2 * row, sum);
  store(a.sums, 2 * row + 1, hit);
}

// y (+)= weight (p - [column is the target]), with p = x, or x / sum if sums are given. Reads 2 bytes and writes 2 per element in bf16;
// bound by memory.
template <Type type, int n>
GPU_FUNCTION void loss_gradient_of_row(const CrossEntropyArgs& a) {
  const std::int64_t row = block(), at = row * a.columns, given = load_integer(a.targets, row) - a.first;
  const int target = given >= 0 && given < a.used ? static_cast<int>(given) : -1;
  const float weight = a.weight * scale_of_backward(a.state);
  const float factor = weight * (a.sums.data ? 1.0f / load(a.sums, 2 * row) : 1.0f);
  for (int c = n * thread(); c < a.columns; c += n * threads()) {
    float x[n], old[n];
    GPU_UNROLL
    for (int j = 0; j < n; ++j) old[j] = 0;
    load_columns<type, n>(a.x, at + c, x);
    if (a.accumulate) load_columns<type, n>(a.y, at + c, old);
    GPU_UNROLL
    for (int j = 0; j < n; ++j) old[j] += factor * x[j] - (c + j == target ? weight : 0.0f);
    store_columns<type, n>(a.y, at + c, old);
  }
}

// Runs `body` for the type with packs if rows are whole packs, else element by element.
#define RUN_ROW(body, ...)                                                                            \
  const Type type = a.x.type;                                                                         \
  if (!has_packs(type) || a.columns % pack_of(type) != 0 || !packed(a.x, type) || !packed(a.y, type)) \
    body<Type::F32, 1>(__VA_ARGS__);                                                                  \
  else if (type == Type::F32)                                                                         \
    body<Type::F32, kPack<Type::F32>>(__VA_ARGS__);                                                   \
  else if (type == Type::BF16)                                                                        \
    body<Type::BF16, kPack<Type::BF16>>(__VA_ARGS__);                                                 \
  else                                                                                                \
    body<Type::F16, kPack<Type::F16>>(__VA_ARGS__);

GPU_KERNEL cross_entropy_forward(const CrossEntropyArgs a) {
  GPU_SHARED(float, parts, kMostWarps);
  RUN_ROW(loss_of_row, a, parts)
}

// Of the columns of this rank. Reads 2 bytes per element in bf16; bound by memory.
GPU_KERNEL cross_entropy_maximum(const CrossEntropyArgs a) {
  GPU_SHARED(float, parts, kMostWarps);
  float largest = 0;
  RUN_ROW(largest = logits_maximum, a, block() * a.columns, parts)
  if (thread() == 0) store(a.maxima, block(), largest);
}

GPU_KERNEL cross_entropy_exponentials(const CrossEntropyArgs a) {
  GPU_SHARED(float, parts, kMostWarps);
  RUN_ROW(exponentials_of_row, a, parts)
}

GPU_KERNEL cross_entropy_backward(const CrossEntropyArgs a) { RUN_ROW(loss_gradient_of_row, a) }

#undef RUN_ROW

// Adds the squares of this thread's packs of eight to `sum`; two packs are loaded at once.
template <Type type>
GPU_FUNCTION void squares_of_packs(const View& x, std::int64_t first, std::int64_t end, double& sum) {
#ifndef FORESHARD_EMULATED
#pragma unroll 2
#endif
  for (std::int64_t i = first + kWidest * thread(); i + kWidest <= end; i += kWidest * threads()) {
    float v[kWidest];
    load_pack<type, kWidest>(x, i, v);
    GPU_UNROLL
    for (int j = 0; j < kWidest; ++j) sum += static_cast<double>(v[j]) * static_cast<double>(v[j]);
  }
}

// Sums in double, in a fixed order: thread t sums terms (for squares: packs) t, t + 256, ... of the block's part, then the sums of the
// threads are added. Reads 2 bytes per element in bf16. Bound by memory, and nearly by conversions to double, of which a multiprocessor
// does 16 per clock.
GPU_KERNEL sum_terms(const TermSumArgs a) {
  GPU_SHARED(double, parts, kThreads);
  const std::int64_t first = block() * a.per_block, end = first + a.per_block < a.count ? first + a.per_block : a.count;
  double sum = 0;
  std::int64_t done = first;
  if (a.terms == Terms::Squares && has_packs(a.x.type) && on_pack_border(a.x) && first % kWidest == 0) {
    RUN_BODY(a.x.type, squares_of_packs, a.x, first, end, sum);
    done = end - (end - first) % kWidest;
  }
  for (std::int64_t i = done + thread(); i < end; i += threads()) {
    if (a.terms == Terms::Staged) {
      sum += static_cast<double>(logf(load(a.x, 2 * i)) + (load(a.maxima, i) - load(a.x, 2 * i + 1)));
    } else {
      const double x = load_double(a.x, i);
      sum += a.terms == Terms::Squares ? x * x : x;
    }
  }
  parts[thread()] = sum;
  for (int half = threads() / 2; half > 0; half /= 2) {
    GPU_BARRIER();
    if (thread() >= half) continue;
    sum += parts[thread() + half];
    parts[thread()] = sum;
  }
  if (thread() != 0) return;
  const double old = a.accumulate ? load_double(a.out, block()) : 0.0;
  store_double(a.out, block(), old + a.weight * sum);
}

}  // namespace foreshard::gpu
