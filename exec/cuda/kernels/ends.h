// The ends of a model: rows of the vocabulary and of positions, their gradients, cross-entropy, sums of terms.
#pragma once

#include "exec/cuda/kernels/elements.h"

namespace foreshard::gpu {

// A block per token. One outside the rows of this rank gives zeros; the sum over ranks puts the row of the rank that has it.
GPU_KERNEL token_rows(const LookupArgs a) {
  const std::int64_t t = block(), row = load_integer(a.tokens, t) - a.first_row;
  const bool here = row >= 0 && row < a.table_rows;
  float x[4] = {0, 0, 0, 0};
  for (std::int64_t c = 4 * thread(); c < a.h; c += 4 * threads()) {
    const int count = up_to_four(a.h - c);
    if (here) load4(a.table, row * a.h + c, count, x);
    store4(a.rows, t * a.h + c, count, x);
  }
}

// A block per token: that of a token's first occurrence adds up all of them, in their order. So the sums are the same in every run.
GPU_KERNEL token_grad(const LookupArgs a) {
  GPU_SHARED(float, found, kThreads / kWarp);
  GPU_SHARED(int, same, kThreads);
  const std::int64_t t = block(), token = load_integer(a.tokens, t), row = token - a.first_row;
  if (row < 0 || row >= a.table_rows) return;
  float earlier = 0;
  for (std::int64_t i = thread(); i < t; i += threads())
    if (load_integer(a.tokens, i) == token) earlier = 1;
  if (block_fold(earlier, true, found) > 0) return;
  for (std::int64_t c0 = 0; c0 < a.h; c0 += threads()) {
    const std::int64_t c = c0 + thread();
    float sum = c < a.h ? load(a.table, row * a.h + c) : 0.0f;
    for (std::int64_t first = t; first < a.count; first += threads()) {
      const std::int64_t i = first + thread();
      const bool hit = i < a.count && load_integer(a.tokens, i) == token;
      if (block_fold(hit ? 1.0f : 0.0f, true, found) == 0) continue;  // most pieces do not have it
      same[thread()] = hit ? 1 : 0;  // those of the piece before have been read: the fold has barriers
      GPU_BARRIER();
      for (int j = 0; j < threads() && c < a.h; ++j)
        if (same[j] != 0) sum += load(a.rows, (first + j) * a.h + c);
    }
    if (c < a.h) store(a.table, row * a.h + c, sum);
  }
}

GPU_FUNCTION std::int64_t type_of(const PositionArgs& a, std::int64_t position) {
  return (a.first_position + position) * a.type_rows / a.sequence;
}

GPU_KERNEL position_rows(const PositionArgs a) {
  const std::int64_t row = block(), position = row / a.samples;
  for (std::int64_t c = thread(); c < a.h; c += threads()) {
    float x = load(a.x, row * a.h + c);
    if (a.table.data) x += load(a.table, (a.first_position + position) * a.h + c);
    if (a.types.data) x += load(a.types, type_of(a, position) * a.h + c);
    store(a.y, row * a.h + c, x);
  }
}

// A block per position: its rows of all samples.
GPU_KERNEL position_grad(const PositionArgs a) {
  const std::int64_t position = block(), to = (a.first_position + position) * a.h;
  for (std::int64_t c = thread(); c < a.h; c += threads()) {
    float sum = load(a.table, to + c);
    for (std::int64_t s = 0; s < a.samples; ++s) sum += load(a.x, (position * a.samples + s) * a.h + c);
    store(a.table, to + c, sum);
  }
}

// A block per type and 256 columns: the rows of its positions, which follow each other.
GPU_KERNEL type_grad(const PositionArgs a) {
  const std::int64_t type = block_y(), c = block() * threads() + thread();
  if (c >= a.h) return;
  float sum = load(a.types, type * a.h + c);
  for (std::int64_t row = 0; row < a.positions * a.samples; ++row)
    if (type_of(a, row / a.samples) == type) sum += load(a.x, row * a.h + c);
  store(a.types, type * a.h + c, sum);
}

GPU_FUNCTION float logits_maximum(const CrossEntropyArgs& a, std::int64_t at, GPU_SHARED_VIEW(float, kThreads / kWarp) parts) {
  float largest = -INFINITY;
  for (std::int64_t c = thread(); c < a.used; c += threads()) largest = fmaxf(largest, load(a.x, at + c));
  return block_fold(largest, true, parts);
}

// terms[row] = log(sum of e^(x - max)) + max - x[target]
GPU_KERNEL cross_entropy_forward(const CrossEntropyArgs a) {
  GPU_SHARED(float, parts, kThreads / kWarp);
  const std::int64_t row = block(), at = row * a.columns;
  const float largest = logits_maximum(a, at, parts);
  float sum = 0;
  for (std::int64_t c = thread(); c < a.used; c += threads()) sum += expf(load(a.x, at + c) - largest);
  sum = block_fold(sum, false, parts);
  const float inverse = 1.0f / sum;
  if (thread() == 0) store(a.terms, row, logf(sum) + (largest - load(a.x, at + load_integer(a.targets, row))));
  for (std::int64_t c = thread(); c < a.columns; c += threads())
    store(a.y, at + c, c < a.used ? expf(load(a.x, at + c) - largest) * inverse : 0.0f);
}

GPU_KERNEL cross_entropy_maximum(const CrossEntropyArgs a) {
  GPU_SHARED(float, parts, kThreads / kWarp);
  const float largest = logits_maximum(a, block() * a.columns, parts);
  if (thread() == 0) store(a.maxima, block(), largest);
}

// sums[row] = {sum of the exponentials, logit of the target where this rank has its column}
GPU_KERNEL cross_entropy_exponentials(const CrossEntropyArgs a) {
  GPU_SHARED(float, parts, kThreads / kWarp);
  const std::int64_t row = block(), at = row * a.columns;
  const float largest = load(a.maxima, row);
  float sum = 0;
  for (std::int64_t c = thread(); c < a.columns; c += threads()) {
    const float e = c < a.used ? expf(load(a.x, at + c) - largest) : 0.0f;
    store(a.y, at + c, e);
    sum += e;
  }
  sum = block_fold(sum, false, parts);
  if (thread() != 0) return;
  const std::int64_t target = load_integer(a.targets, row) - a.first;
  store(a.sums, 2 * row, sum);
  store(a.sums, 2 * row + 1, target >= 0 && target < a.used ? load(a.x, at + target) : 0.0f);
}

// y (+)= weight (p - [column is the target]); p = x, or x / sum where the sums are given.
GPU_KERNEL cross_entropy_backward(const CrossEntropyArgs a) {
  const std::int64_t row = block(), at = row * a.columns, target = load_integer(a.targets, row) - a.first;
  const float weight = a.weight * scale_of_backward(a.state);
  const float factor = weight * (a.sums.data ? 1.0f / load(a.sums, 2 * row) : 1.0f);
  for (std::int64_t c = thread(); c < a.columns; c += threads()) {
    const float hit = c == target && target < a.used ? weight : 0.0f;
    store(a.y, at + c, old_value(a.accumulate, a.y, at + c) + factor * load(a.x, at + c) - hit);
  }
}

// In double, in a fixed order: thread t takes terms t, t + 256, ... of the block's part; then the threads are added up.
GPU_KERNEL sum_terms(const TermSumArgs a) {
  GPU_SHARED(double, parts, kThreads);
  const std::int64_t first = block() * a.per_block, end = first + a.per_block < a.count ? first + a.per_block : a.count;
  double sum = 0;
  for (std::int64_t i = first + thread(); i < end; i += threads()) {
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
