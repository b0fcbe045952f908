// Dropout (Srivastava et al. 2014). A thread block processes a piece of one run: contiguous elements of one sample, whose random words are
// consecutive too. Reference: exec/host/host_dropout.cpp.
#pragma once

#include "exec/cuda/kernels/packs.h"

namespace foreshard::gpu {

struct DropoutRun {
  std::int64_t at;       // index of its first element
  std::uint64_t stream;  // stream of random words: that of the sample
  std::int64_t first;    // number of the random word of its first element
  int begin, stride;     // this thread's packs of n elements begin at begin, begin + stride, ... within the run
};
template <int n>
GPU_FUNCTION DropoutRun dropout_run(const DropoutArgs& a) {
  const std::int64_t run = block() / a.blocks_of_run, piece = block() - run * a.blocks_of_run;
  const std::int64_t sample = a.heads > 0 ? run / a.heads : run % a.samples;
  const std::int64_t place = a.heads > 0 ? a.first_place + run % a.heads : a.positions.at(run / a.samples);
  return {.at = run * a.length,
          .stream = stream_of_sample(a.key, a.first_sample + sample),
          .first = place * a.length,
          .begin = n * (static_cast<int>(piece) * threads() + thread()),
          .stride = n * a.blocks_of_run * threads()};
}

// y = skip + mask scale (x + bias). Reads 4 bytes and writes 3 per element in bf16, with the mask. Bound by memory, and nearly by the
// integer units, which compute ten rounds of Philox for four elements.
template <Type type>
GPU_FUNCTION void dropout_forward_packs(const DropoutArgs& a) {
  constexpr int n = kPack<type>;
  const DropoutRun run = dropout_run<n>(a);
  const int at = static_cast<int>(run.at);
  for (int i = run.begin; i < a.length; i += run.stride) {
    float x[n], more[n];
    bool keep[n];
    GPU_UNROLL
    for (int j = 0; j < n; j += 4) {
      const RandomWords words = random_words(a.seed, run.stream, static_cast<std::uint64_t>(run.first + i + j) / 4);
      GPU_UNROLL
      for (int k = 0; k < 4; ++k) keep[j + k] = words.word[k] >= a.threshold;
    }
    load_pack<type>(a.x, at + i, x);
    if (a.bias.data) {
      load_pack<type>(a.bias, i, more);
      GPU_UNROLL
      for (int j = 0; j < n; ++j) x[j] += more[j];
    }
    GPU_UNROLL
    for (int j = 0; j < n; ++j) more[j] = 0;
    if (a.skip.data) load_pack<type>(a.skip, at + i, more);
    GPU_UNROLL
    for (int j = 0; j < n; ++j) more[j] += keep[j] ? x[j] * a.scale : 0.0f;
    store_flags<n>(a.mask, at + i, keep);
    store_pack<type>(a.y, at + i, more);
  }
}
GPU_FUNCTION bool dropout_forward_by_packs(const DropoutArgs& a) {
  const Type type = a.x.type;
  if (!has_packs(type) || a.length % pack_of(type) != 0 || a.runs * a.length > kMostPacked || !on_pack_border(a.mask) ||
      a.keys > 0)
    return false;
  if (!packed(a.x, type) || !packed(a.skip, type) || !packed(a.bias, type) || !packed(a.y, type)) return false;
  RUN_BODY(type, dropout_forward_packs, a);
  return true;
}

// Number of the random word of element i of a run. They are consecutive, except in maps whose keys are gathered from several ranks.
GPU_FUNCTION std::int64_t word_of(const DropoutArgs& a, const DropoutRun& run, std::int64_t i) {
  if (a.keys == 0) return run.first + i;
  const std::int64_t query = i / a.keys, head = run.first / a.length;
  return (head * a.queries + a.positions.at(query)) * a.keys + a.order.position(i - query * a.keys);
}

GPU_KERNEL dropout_forward(const DropoutArgs a) {
  if (dropout_forward_by_packs(a)) return;
  const DropoutRun run = dropout_run<1>(a);
  for (std::int64_t i = run.begin; i < a.length; i += run.stride) {
    const std::int64_t at = run.at + i;
    const bool keep = keeps(a.seed, run.stream, word_of(a, run, i), a.threshold);
    const float x = load(a.x, at) + (a.bias.data ? load(a.bias, i) : 0.0f);
    store(a.mask, at, keep ? 1.0f : 0.0f);
    store(a.y, at, (a.skip.data ? load(a.skip, at) : 0.0f) + (keep ? x * a.scale : 0.0f));
  }
}

// y (+)= mask scale x. Reads 3 bytes and writes 2 per element in bf16; bound by memory.
template <Type type>
GPU_FUNCTION void dropout_backward_packs(const DropoutArgs& a) {
  constexpr int n = kPack<type>;
  const std::int64_t size = a.runs * a.length - n + 1;
  for (std::int64_t i = first_pack<n, std::int64_t>(); i < size; i += pack_stride<n, std::int64_t>()) {
    float x[n], old[n];
    bool keep[n];
    GPU_UNROLL
    for (int j = 0; j < n; ++j) old[j] = 0;
    load_pack<type>(a.x, i, x);
    load_flags<n>(a.mask, i, keep);
    if (a.accumulate) load_pack<type>(a.y, i, old);
    GPU_UNROLL
    for (int j = 0; j < n; ++j) old[j] += keep[j] ? x[j] * a.scale : 0.0f;
    store_pack<type>(a.y, i, old);
  }
}
GPU_FUNCTION std::int64_t dropout_backward_by_packs(const DropoutArgs& a) {
  const Type type = a.x.type;
  const std::int64_t size = a.runs * a.length;
  if (!has_packs(type) || !on_pack_border(a.mask) || !packed(a.x, type) || !packed(a.y, type)) return 0;
  RUN_BODY(type, dropout_backward_packs, a);
  return size - size % pack_of(type);
}

GPU_KERNEL dropout_backward(const DropoutArgs a) {
  for (std::int64_t i = dropout_backward_by_packs(a) + flat_thread(); i < a.runs * a.length; i += flat_threads())
    store(a.y, i, old_value(a.accumulate, a.y, i) + (load_flag(a.mask, i) ? load(a.x, i) * a.scale : 0.0f));
}

}  // namespace foreshard::gpu
