// Selects the numbers of largest magnitude in an array (Code::Largest), the tokens with the largest scores, and the rows of kept tokens.
// References: exec/arithmetic/host_codec.cpp, exec/host/host_token_rows.cpp.
#pragma once

#include "exec/cuda/kernels/codec.h"

namespace foreshard::gpu {

// ---- the largest numbers ----------------------------------------------------------------------------------------------------------------
// Radix selection: the key of a number is its magnitude as bits; a digit is eight bits of the key. Four passes of top_digits and
// top_next_digit find the digits of the smallest selected key, from the highest on. found = {key of the smallest selected number, how many
// numbers with this key are selected}. Then top_tally counts, and top_pairs writes the selected numbers.

GPU_FUNCTION std::uint32_t size_key(float x) { return float_to_bits(x) & 0x7FFFFFFFu; }

// counts[chunk, digit]: numbers of the chunk with this digit whose higher digits are those found so far. One thread block per chunk. Reads
// 4 bytes per element; bound by memory.
GPU_KERNEL top_digits(const TopMagnitudesArgs a) {
  GPU_SHARED(std::uint32_t, digits, 256);
  for (int d = thread(); d < 256; d += threads()) digits[d] = 0;
  GPU_BARRIER();
  const std::uint32_t known = a.shift == 24 ? 0 : load_bits(a.found, 0) >> (a.shift + 8);
  const std::int64_t first = block() * a.per_chunk, end = at_most(a.elements, first + a.per_chunk);
  for (std::int64_t i = first + thread(); i < end; i += threads()) {
    const std::uint32_t key = size_key(load(a.x, i));
    if (a.shift == 24 || key >> (a.shift + 8) == known) count_one(digits, static_cast<std::int64_t>(key >> a.shift & 255u));
  }
  GPU_BARRIER();
  for (int d = thread(); d < 256; d += threads()) store_bits(a.counts, block() * 256 + d, digits[d]);
}

// Finds the next digit. One thread block. In this kernel, per_chunk is the number of chunks. Reads 1 KiB per chunk; bound by the time of a
// launch.
GPU_KERNEL top_next_digit(const TopMagnitudesArgs a) {
  GPU_SHARED(std::uint32_t, digits, 256);
  for (int d = thread(); d < 256; d += threads()) {
    std::uint32_t sum = 0;
    for (std::int64_t c = 0; c < a.per_chunk; ++c) sum += load_bits(a.counts, c * 256 + d);
    digits[d] = sum;
  }
  GPU_BARRIER();
  if (thread() != 0) return;
  std::uint32_t key = a.shift == 24 ? 0 : load_bits(a.found, 0), digit = 255;
  std::uint32_t equal = a.shift == 24 ? static_cast<std::uint32_t>(a.kept) : load_bits(a.found, 1);
  while (digit > 0 && digits[digit] < equal) {
    equal -= digits[digit];
    --digit;
  }
  store_bits(a.found, 0, key | digit << a.shift);
  store_bits(a.found, 1, equal);
}

// counts[chunk, 2]: count of numbers above the key, and of numbers with the key. One thread block per chunk. Reads 4 bytes per element;
// bound by memory.
GPU_KERNEL top_tally(const TopMagnitudesArgs a) {
  GPU_SHARED(std::uint32_t, tally, 2);
  if (thread() < 2) tally[thread()] = 0;
  GPU_BARRIER();
  const std::uint32_t key = load_bits(a.found, 0);
  const std::int64_t first = block() * a.per_chunk, end = at_most(a.elements, first + a.per_chunk);
  for (std::int64_t i = first + thread(); i < end; i += threads()) {
    const std::uint32_t mine = size_key(load(a.x, i));
    if (mine >= key) count_one(tally, mine > key ? 0 : 1);
  }
  GPU_BARRIER();
  if (thread() < 2) store_bits(a.counts, 2 * block() + thread(), tally[thread()]);
}

// Inclusive prefix sum over a thread block, one number per thread (Hillis and Steele 1986). `mine` becomes the sum up to this thread;
// returns the sum of all. The caller needs a barrier before it uses `sums` again.
GPU_FUNCTION std::uint32_t counts_up_to(std::uint32_t& mine, GPU_SHARED_VIEW(std::uint32_t, 2 * kThreads) sums) {
  int now = 0;
  sums[thread()] = mine;
  GPU_BARRIER();
  for (int step = 1; step < threads(); step *= 2, now = kThreads - now) {
    if (thread() >= step) mine += sums[now + thread() - step];
    sums[kThreads - now + thread()] = mine;
    GPU_BARRIER();
  }
  return sums[now + threads() - 1];
}

// Writes the selected numbers and their positions in ascending order of positions. A thread block processes its chunk, one element per
// thread at a time. Reads 4 bytes per element and writes 8 per pair; bound by memory, and nearly by the barriers of a prefix sum for each
// such group of elements.
GPU_KERNEL top_pairs(const TopMagnitudesArgs a) {
  GPU_SHARED(std::uint32_t, start, 2);
  GPU_SHARED(std::uint32_t, sums, 2 * kThreads);
  const std::uint32_t key = load_bits(a.found, 0), quota = load_bits(a.found, 1);
  if (thread() < 2) {
    std::uint32_t before = 0;
    for (std::int64_t c = 0; c < block(); ++c) before += load_bits(a.counts, 2 * c + thread());
    start[thread()] = before;
  }
  GPU_BARRIER();
  std::uint32_t above = start[0], equal = start[1];
  const std::int64_t first = block() * a.per_chunk, end = at_most(a.elements, first + a.per_chunk);
  for (std::int64_t at = first; at < end; at += threads()) {
    const std::int64_t i = at + thread();
    const float x = i < end ? load(a.x, i) : 0.0f;
    const std::uint32_t mine = i < end ? size_key(x) : 0u;
    const bool larger = i < end && mine > key, same = i < end && mine == key;
    // Counts over the threads up to this one: numbers above the key in the low half of the word, numbers with the key in the high half.
    std::uint32_t sum = (larger ? 1u : 0u) | (same ? 1u << 16 : 0u);
    const std::uint32_t all = counts_up_to(sum, sums);
    const std::uint32_t larger_before = above + (sum & 0xFFFFu) - (larger ? 1u : 0u),
                        same_before = equal + (sum >> 16) - (same ? 1u : 0u);
    const bool sent = larger || (same && same_before < quota);
    if (sent) {
      const std::int64_t to = larger_before + (same_before < quota ? same_before : quota);
      store(a.codes, to, x);
      store_bits(a.codes, a.kept + to, static_cast<std::uint32_t>(i));
      if (a.left.data) store(a.left, i, 0.0f);
      if (a.velocity.data) store(a.velocity, i, 0.0f);
    }
    above += all & 0xFFFFu, equal += all >> 16;
    GPU_BARRIER();
  }
}

// ---- tokens -----------------------------------------------------------------------------------------------------------------------------

// An integer that compares as the score.
GPU_FUNCTION std::uint32_t score_key(float x) {
  const std::uint32_t bits = float_to_bits(x);
  return bits >> 31 ? ~bits : bits | 0x80000000u;
}

// Selects in each part of a sample the tokens with the largest scores (of equal scores, the first), and in any case the first token of the
// sample. One thread block per part. It finds the smallest selected key bit by bit, in 32 passes over the scores; with the pass that counts the larger keys, a
// thread reads 33 tokens / threads scores. Reads 4 bytes per token from memory, then again from the cache; bound by barriers, three for
// each bit.
GPU_KERNEL keep_tokens(const KeepTokensArgs a) {
  GPU_SHARED(std::uint32_t, tally, 2);
  GPU_SHARED(std::uint32_t, sums, 2 * kThreads);
  const std::int64_t at = block() * a.tokens, to = block() * a.kept, begins = block() % a.parts * a.tokens;
  const std::int64_t first_other = begins == 0 ? 1 : 0;  // the first token is selected whatever its score
  const auto others = static_cast<std::uint32_t>(a.kept - first_other);
  std::uint32_t key = 0;
  for (int bit = 31; bit >= 0; --bit) {  // key becomes the largest value that at least `others` keys reach
    const std::uint32_t tried = key | 1u << bit;
    if (thread() < 2) tally[thread()] = 0;
    GPU_BARRIER();
    for (std::int64_t j = first_other + thread(); j < a.tokens; j += threads())
      if (score_key(load(a.scores, at + j)) >= tried) count_one(tally, 0);
    GPU_BARRIER();
    const std::uint32_t reach = tally[0];
    if (reach >= others) key = tried;
    GPU_BARRIER();
  }
  if (thread() < 2) tally[thread()] = 0;
  GPU_BARRIER();
  for (std::int64_t j = first_other + thread(); j < a.tokens; j += threads())
    if (score_key(load(a.scores, at + j)) > key) count_one(tally, 0);
  GPU_BARRIER();
  const std::uint32_t quota = others - tally[0];  // how many tokens with exactly that key are selected
  std::uint32_t above = 0, equal = 0;
  for (std::int64_t first = 0; first < a.tokens; first += threads()) {
    const std::int64_t j = first + thread();
    const bool other = j >= first_other && j < a.tokens;
    const std::uint32_t mine = other ? score_key(load(a.scores, at + j)) : 0u;
    const bool larger = j < first_other || (other && mine > key), same = other && mine == key;
    std::uint32_t sum = (larger ? 1u : 0u) | (same ? 1u << 16 : 0u);
    const std::uint32_t all = counts_up_to(sum, sums);
    const std::uint32_t before = equal + (sum >> 16) - (same ? 1u : 0u);
    if (larger || (same && before < quota))
      store_integer(a.tokens_kept, to + above + (sum & 0xFFFFu) - (larger ? 1u : 0u) + (before < quota ? before : quota), begins + j);
    above += all & 0xFFFFu, equal += all >> 16;
    GPU_BARRIER();
  }
}

// Copies kept rows out of all rows, or back. Reads 2 bytes and writes 2 per element of the kept rows in bf16; bound by memory.
GPU_KERNEL kept_rows(const KeptRowsArgs a) {
  const std::int64_t size = a.kept * a.samples * a.h;
  for (std::int64_t e = flat_thread(); e < size; e += flat_threads()) {
    const std::int64_t row = e / a.h, sample = row % a.samples, i = row / a.samples;
    const std::int64_t kept = (sample * a.parts + a.part) * a.kept + i;
    const std::int64_t all = ((load_integer(a.tokens, kept) - a.first) * a.samples + sample) * a.h + e % a.h;
    const std::int64_t from = a.takes ? all : e, to = a.takes ? e : all;
    store(a.y, to, old_value(a.accumulate, a.y, to) + load(a.x, from));
  }
}

}  // namespace foreshard::gpu
