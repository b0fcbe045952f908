// Kernels that compress and decompress numbers with the codes of core/op/codec.h. Codes are 32-bit words in arrays of type F32; some words
// hold integer bits. References: exec/arithmetic/host_codec.cpp, exec/host/host_encode.cpp.
#pragma once

#include "exec/cuda/codec_args.h"
#include "exec/cuda/kernels/words.h"

namespace foreshard::gpu {

GPU_FUNCTION std::uint32_t load_bits(const View& a, std::int64_t i) {
  check(a, i, 1, false);
  return static_cast<const std::uint32_t*>(a.data)[i];
}
GPU_FUNCTION void store_bits(const View& a, std::int64_t i, std::uint32_t bits) {
  check(a, i, 1, true);
  static_cast<std::uint32_t*>(a.data)[i] = bits;
}
GPU_FUNCTION std::int64_t at_most(std::int64_t a, std::int64_t b) { return a < b ? a : b; }
GPU_FUNCTION std::int64_t between(std::int64_t x, std::int64_t least, std::int64_t most) {
  return x < least ? least : x < most ? x : most;
}

// A part of the array: index of its first element, number of elements without padding, index of its first word of codes.
struct CodePart {
  std::int64_t first, used, word;
};
GPU_FUNCTION CodePart part_of(const CodeArgs& a, std::int64_t part) {
  return {part * a.length, between(a.elements - part * a.length, 0, a.length), part * a.part_words};
}

// Computes the array to encode, with the residual of earlier runs, in `left`. Per element, it reads 2 bytes in bf16 and 4 of each state,
// and writes 4 of each state; bound by memory.
GPU_KERNEL code_source(const CodeSourceArgs a) {
  for (std::int64_t i = flat_thread(); i < a.count; i += flat_threads()) {
    float x = a.rest * load(a.x, i);
    if (a.moment.data) x = a.beta * load(a.moment, i) + x;
    if (a.velocity.data) {
      x = a.momentum * load(a.velocity, i) + x;
      store(a.velocity, i, x);
    }
    store(a.left, i, (a.adds ? load(a.left, i) : 0.0f) + x);
  }
}

// Code::Signs: one thread block per block of 1024 numbers. block_y: the part. Per element, it reads 4 bytes from memory, then again from
// the cache, and writes 1 bit, with `left` 4 bytes more; bound by memory.
GPU_KERNEL code_signs(const CodeArgs a) {
  GPU_SHARED(float, parts, kMostWarps);
  const CodePart part = part_of(a, block_y());
  const std::int64_t first = block() * 1024, used = between(part.used - first, 0, 1024), scales = (a.length + 1023) / 1024;
  float sum = 0;
  for (std::int64_t i = thread(); i < used; i += threads()) sum += fabsf(load(a.x, part.first + first + i));
  sum = block_fold(sum, false, parts);
  const float scale = used > 0 ? sum / static_cast<float>(used) : 0.0f;
  if (thread() == 0) store(a.codes, part.word + block(), scale);
  if (thread() < 32 && first + 32 * thread() < a.length) {
    std::uint32_t bits = 0;
    for (int j = 0; j < 32; ++j)
      if (const std::int64_t i = 32 * thread() + j; i < used)
        bits |= (float_to_bits(load(a.x, part.first + first + i)) >> 31) << j;
    store_bits(a.codes, part.word + scales + first / 32 + thread(), bits);
  }
  GPU_BARRIER();  // `left` may be x: all numbers have been read before it is written
  if (!a.left.data) return;
  for (std::int64_t i = thread(); i < used; i += threads()) {
    const float x = load(a.x, part.first + first + i);
    store(a.left, part.first + first + i, x - (float_to_bits(x) >> 31 ? -scale : scale));
  }
}

// Code::EightBits: one thread block per block of 256 numbers; a thread makes one word. block_y: the part. Per element, it reads 4 bytes
// from memory, then again from the cache, and writes 1 byte, with `left` 4 bytes more; bound by memory.
GPU_KERNEL code_bytes(const CodeArgs a) {
  GPU_SHARED(float, parts, kMostWarps);
  const CodePart part = part_of(a, block_y());
  const std::int64_t first = block() * 256, used = between(part.used - first, 0, 256), scales = (a.length + 255) / 256;
  const float mine = thread() < used ? fabsf(load(a.x, part.first + first + thread())) : 0.0f;
  const float scale = block_fold(mine, true, parts);
  if (thread() == 0) store(a.codes, part.word + block(), scale);
  const float steps = scale > 0 ? 127.0f / scale : 0.0f, step = scale / 127.0f;
  if (4 * thread() >= 256 || first + 4 * thread() >= a.length) return;
  std::uint32_t word = 0;
  for (int j = 0; j < 4; ++j) {
    const std::int64_t i = 4 * thread() + j;
    if (i >= used) continue;
    const float x = load(a.x, part.first + first + i);
    const float code = fminf(fmaxf(rintf(x * steps), -127.0f), 127.0f);
    word |= (static_cast<std::uint32_t>(static_cast<std::int32_t>(code)) & 0xFFu) << (8 * j);
    if (a.left.data) store(a.left, part.first + first + i, x - code * step);
  }
  store_bits(a.codes, part.word + scales + first / 4 + thread(), word);
}

// ---- segments -------------------------------------------------------------------------------------------------------------------------

// kPlaces: the most bin edges at which a border may lie, both ends included (choose_segments in exec/arithmetic/host_codec.h).
constexpr int kBins = 4096, kShares = 128, kPlaces = 2 * kShares + 1, kMostSegments = 16;

// What is sorted into bins: the number, or its magnitude if segments = 0, because the borders are then symmetric.
GPU_FUNCTION float seen(const CodeArgs& a, std::int64_t i) {
  const float x = load(a.x, i);
  return a.segments == 0 ? fabsf(x) : x;
}

// Code::Segments, first step: ranges[part, chunk] = smallest and largest number of a chunk. One thread block per chunk. Reads 4 bytes per
// element; bound by memory.
GPU_KERNEL code_range(const CodeArgs a) {
  GPU_SHARED(float, parts, kMostWarps);
  const CodePart part = part_of(a, block_y());
  const std::int64_t first = block() * a.per_chunk, end = at_most(part.used, first + a.per_chunk);
  float low = INFINITY, high = -INFINITY;
  for (std::int64_t i = first + thread(); i < end; i += threads()) {
    const float x = seen(a, part.first + i);
    low = fminf(low, x), high = fmaxf(high, x);
  }
  low = -block_fold(-low, true, parts);
  high = block_fold(high, true, parts);
  if (thread() != 0) return;
  store(a.ranges, 2 * (block_y() * blocks() + block()), low);
  store(a.ranges, 2 * (block_y() * blocks() + block()) + 1, high);
}

struct CodeRange {
  float low, high;
};
GPU_FUNCTION CodeRange range_of(const CodeArgs& a, std::int64_t part, std::int64_t chunks) {
  CodeRange range = {INFINITY, -INFINITY};
  for (std::int64_t c = 0; c < chunks; ++c) {
    range.low = fminf(range.low, load(a.ranges, 2 * (part * chunks + c)));
    range.high = fmaxf(range.high, load(a.ranges, 2 * (part * chunks + c) + 1));
  }
  if (a.segments == 0) range.low = 0;
  return range;
}
GPU_FUNCTION bool empty(const CodeRange& range) { return !(range.high > range.low) || !(range.high - range.low < INFINITY); }

// Second step: histograms counts[part, chunk, bin] over kBins equal bins. One thread block per chunk. Reads 4 bytes per element; bound by
// memory, or by shared memory if most numbers are in one bin.
GPU_KERNEL code_bins(const CodeArgs a) {
  GPU_SHARED(std::uint32_t, bins, kBins);
  const CodePart part = part_of(a, block_y());
  const CodeRange range = range_of(a, block_y(), blocks());
  for (int bin = thread(); bin < kBins; bin += threads()) bins[bin] = 0;
  GPU_BARRIER();
  const std::int64_t first = block() * a.per_chunk, end = empty(range) ? first : at_most(part.used, first + a.per_chunk);
  const float per_bin = static_cast<float>(kBins) / (range.high - range.low);
  for (std::int64_t i = first + thread(); i < end; i += threads())
    count_one(bins, between(static_cast<std::int64_t>((seen(a, part.first + i) - range.low) * per_bin), 0, kBins - 1));
  GPU_BARRIER();
  const std::int64_t to = (block_y() * blocks() + block()) * kBins;
  for (int bin = thread(); bin < kBins; bin += threads()) store_bits(a.counts, to + bin, bins[bin]);
}

GPU_FUNCTION float border_of(const CodeRange& range, std::int64_t bin) {
  if (bin == kBins) return range.high;
  return range.low + (range.high - range.low) * (static_cast<float>(bin) / static_cast<float>(kBins));
}

// Third step: the borders of the segments, as choose_segments in exec/arithmetic/host_codec.h. Errors are integers, so that GPU and CPU
// find the same borders. One thread block per part. In this kernel, per_chunk is the number of chunks. Reads 4 bytes per bin and chunk;
// bound by the arithmetic of one thread block per part: at most 257 positions x 257 positions x segments.
GPU_KERNEL code_borders(const CodeArgs a) {
  GPU_SHARED(std::uint32_t, below, kBins + 1);
  GPU_SHARED(std::uint64_t, best, 2 * kPlaces);
  GPU_SHARED(std::uint32_t, place, kPlaces + 1);
  GPU_SHARED(std::uint32_t, from, (kMostSegments + 1) * kPlaces);
  const CodePart part = part_of(a, block_y());
  const std::int64_t chunks = a.per_chunk, segments = a.segments == 0 ? 4 : a.segments;
  const CodeRange range = range_of(a, block_y(), chunks);
  if (empty(range)) {  // the same in all threads
    if (thread() > segments) return;
    const float only = part.used == 0 ? 0.0f : range.low;
    const float edge = a.segments == 0 && part.used > 0 ? range.high : only;
    store(a.codes, part.word + thread(), thread() == segments ? edge : a.segments == 0 && thread() == 0 ? -edge : only);
    return;
  }
  for (int bin = thread(); bin < kBins; bin += threads()) {
    std::uint32_t sum = 0;
    for (std::int64_t c = 0; c < chunks; ++c) sum += load_bits(a.counts, (block_y() * chunks + c) * kBins + bin);
    below[bin + 1] = sum;
  }
  GPU_BARRIER();
  if (thread() == 0) {
    below[0] = 0;
    for (int bin = 1; bin <= kBins; ++bin) below[bin] = below[bin - 1] + below[bin];
    if (a.segments != 0) {  // the edges at which a border may lie
      std::uint32_t count = 0;
      std::uint64_t share = 1;
      const std::uint64_t all = below[kBins];
      for (int bin = 0; bin <= kBins; ++bin) {
        bool takes = bin % (kBins / kShares) == 0;
        const std::uint64_t scaled = static_cast<std::uint64_t>(below[bin]) * kShares;
        while (share < kShares && scaled >= share * all) takes = true, ++share;
        if (takes) place[count++] = static_cast<std::uint32_t>(bin);
      }
      place[kPlaces] = count;
    }
  }
  GPU_BARRIER();
  if (a.segments == 0) {
    std::uint64_t least = ~std::uint64_t{0}, at = 1;
    const std::uint64_t all = below[kBins];
    for (std::uint64_t c = 1 + static_cast<std::uint64_t>(thread()); c < kBins; c += static_cast<std::uint64_t>(threads())) {
      const std::uint64_t inside = below[static_cast<std::int64_t>(c)];
      const std::uint64_t error = inside * c * c + (all - inside) * (kBins - c) * (kBins - c);
      if (error < least) least = error, at = c;
    }
    best[thread()] = least, best[threads() + thread()] = at;
    GPU_BARRIER();
    if (thread() != 0) return;
    for (int t = 1; t < threads(); ++t) {
      const std::uint64_t error = best[t], c = best[threads() + t];
      if (error < least || (error == least && c < at)) least = error, at = c;
    }
    const float c = border_of(range, static_cast<std::int64_t>(at));
    store(a.codes, part.word, -range.high), store(a.codes, part.word + 1, -c), store(a.codes, part.word + 2, 0.0f);
    store(a.codes, part.word + 3, c), store(a.codes, part.word + 4, range.high);
    return;
  }
  const int places = static_cast<int>(place[kPlaces]);
  for (int j = thread(); j < places; j += threads()) best[j] = j == 0 ? 0 : ~std::uint64_t{0};
  GPU_BARRIER();
  for (int s = 1; s <= segments; ++s) {
    const int old = (s - 1) % 2 * kPlaces, now = s % 2 * kPlaces;
    for (int j = thread(); j < places; j += threads()) {
      std::uint64_t least = ~std::uint64_t{0};
      const std::uint64_t end = place[j], inside_end = below[static_cast<std::int64_t>(end)];
      for (int i = s - 1; i < j; ++i) {
        const std::uint64_t before = best[old + i], first = place[i];
        if (before == ~std::uint64_t{0}) continue;
        const std::uint64_t inside = inside_end - below[static_cast<std::int64_t>(first)];
        const std::uint64_t error = before + inside * (end - first) * (end - first);
        if (error >= least) continue;
        least = error, from[s * kPlaces + j] = static_cast<std::uint32_t>(i);
      }
      best[now + j] = least;
    }
    GPU_BARRIER();
  }
  if (thread() != 0) return;
  int at = places - 1;
  for (int s = static_cast<int>(segments); s > 0; --s) {
    store(a.codes, part.word + s, border_of(range, static_cast<std::int64_t>(place[at])));
    at = static_cast<int>(from[s * kPlaces + at]);
  }
  store(a.codes, part.word, border_of(range, 0));
}

struct CodeLevels {
  std::int64_t segments, levels, word;  // word: index of the first border
};
GPU_FUNCTION CodeLevels levels_of(std::int64_t segments, int bits, std::int64_t word) {
  const std::int64_t equal = segments == 0 ? 4 : segments;
  return {equal, (std::int64_t{1} << bits) / equal, word};
}
GPU_FUNCTION float level_value(const View& codes, const CodeLevels& l, std::int64_t code) {
  const std::int64_t s = code / l.levels;
  const float low = load(codes, l.word + s), step = (load(codes, l.word + s + 1) - low) / static_cast<float>(l.levels);
  return low + (static_cast<float>(code % l.levels) + 0.5f) * step;
}

// Fourth step: encodes. A thread makes one word. Reads 4 bytes per element, writes 4 and the code; bound by memory.
GPU_KERNEL code_segments(const CodeArgs a) {
  const CodePart part = part_of(a, block_y());
  const CodeLevels l = levels_of(a.segments, a.bits, part.word);
  const std::int64_t per_word = 32 / a.bits, words = (a.length + per_word - 1) / per_word;
  for (std::int64_t w = flat_thread(); w < words; w += flat_threads()) {
    std::uint32_t word = 0;
    for (std::int64_t j = 0; j < per_word && w * per_word + j < part.used; ++j) {
      const std::int64_t i = part.first + w * per_word + j;
      const float x = load(a.x, i);
      std::int64_t s = 0;
      while (s + 1 < l.segments && x >= load(a.codes, l.word + s + 1)) ++s;
      const float low = load(a.codes, l.word + s);
      const float step = (load(a.codes, l.word + s + 1) - low) / static_cast<float>(l.levels);
      const float at = step > 0 ? (x - low) / step : 0.0f;
      const std::int64_t code =
          s * l.levels + static_cast<std::int64_t>(fminf(fmaxf(at, 0.0f), static_cast<float>(l.levels - 1)));
      word |= static_cast<std::uint32_t>(code) << (j * a.bits);
      if (a.left.data) store(a.left, i, x - level_value(a.codes, l, code));
    }
    store_bits(a.codes, part.word + l.segments + 1 + w, word);
  }
}

// ---- decoding ---------------------------------------------------------------------------------------------------------------------------

GPU_FUNCTION float decoded(const DecodeArgs& a, std::int64_t part, std::int64_t i) {
  const std::int64_t word = part * a.part_words;
  switch (a.how) {
    case CodeHow::Signs: {
      const float scale = load(a.codes, word + i / 1024);
      return load_bits(a.codes, word + (a.length + 1023) / 1024 + i / 32) >> (i % 32) & 1u ? -scale : scale;
    }
    case CodeHow::Bytes: {
      const std::uint32_t four = load_bits(a.codes, word + (a.length + 255) / 256 + i / 4);
      const auto code = static_cast<std::int32_t>(four << (24 - 8 * (i % 4))) >> 24;
      return static_cast<float>(code) * (load(a.codes, word + i / 256) / 127.0f);
    }
    case CodeHow::Segments: {
      const CodeLevels l = levels_of(a.segments, a.bits, word);
      const std::int64_t per_word = 32 / a.bits;
      const std::uint32_t bits = load_bits(a.codes, word + l.segments + 1 + i / per_word);
      return level_value(a.codes, l, bits >> (i % per_word * a.bits) & ((1u << a.bits) - 1u));
    }
  }
  return 0;
}

// Reads the codes and writes 4 bytes per element, which it also reads if it accumulates; bound by memory.
GPU_KERNEL decode_array(const DecodeArgs a) {
  for (std::int64_t i = flat_thread(); i < a.count; i += flat_threads()) {
    float sum = 0;
    if (!a.adds)
      sum = decoded(a, i / a.length, i % a.length);
    else if (i < a.used)
      for (std::int64_t p = 0; p < a.parts; ++p) sum = p == 0 ? decoded(a, 0, i) : sum + decoded(a, p, i);
    store(a.y, i, a.accumulates ? load(a.y, i) + sum : sum);
  }
}

// The pairs of one part. Their positions are distinct, so threads do not conflict. Reads 8 bytes per pair, and reads and writes 4 bytes at
// the position that the pair names; bound by memory, which transfers 32 bytes for these 4.
GPU_KERNEL scatter_pairs(const PairsArgs a) {
  for (std::int64_t i = flat_thread(); i < a.kept; i += flat_threads()) {
    const std::int64_t at = load_bits(a.codes, a.kept + i);
    if (at < a.y.elements) store(a.y, at, load(a.y, at) + load(a.codes, i));
  }
}

}  // namespace foreshard::gpu
