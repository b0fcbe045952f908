// Arguments of the kernels that compress numbers (core/op/codec.h) and select tokens. They follow the rules of exec/cuda/kernel_args.h.
// Arrays of codes, counts and results of searches are arrays of 32-bit words with type F32, whose bits may be integers.
#pragma once

#include "exec/cuda/kernel_args.h"

namespace foreshard::gpu {

// Computes the array that is encoded, in `left`: left = x' or, if `adds`, left + x', with x' = momentum velocity + (rest x + beta moment).
// A term whose array has no data is left out. x' also becomes the new velocity.
struct CodeSourceArgs {
  View x, moment, velocity, left;
  std::int64_t count;
  float rest, beta, momentum;
  bool adds;
  template <class F>
  void each(F f) const {
    f(x), f(moment), f(velocity), f(left);
  }
};

// Encodes x. It has `elements` elements in parts of `length`; the codes of a part are `part_words` 32-bit words. left: receives the
// residual; it may be x itself. For Segments, a part is searched in chunks of `per_chunk` elements: ranges [part, chunk, 2] holds the
// smallest and largest number, counts [part, chunk, bin] the histograms.
struct CodeArgs {
  View x, codes, left, ranges, counts;
  std::int64_t elements, length, part_words, per_chunk, segments;
  int bits;
  template <class F>
  void each(F f) const {
    f(x), f(codes), f(left), f(ranges), f(counts);
  }
};

// Finds the `kept` numbers of largest magnitude in x and writes them with their positions to `codes`; their entries in `left` (residual)
// and `velocity` become 0. Radix selection in four passes, one per 8 bits of the magnitude: `shift` is 24, 16, 8, 0. `counts` and `found`
// hold intermediate results (see kernels/largest.h).
struct TopMagnitudesArgs {
  View x, codes, left, velocity, counts, found;
  std::int64_t elements, kept, per_chunk;
  int shift;
  template <class F>
  void each(F f) const {
    f(x), f(codes), f(left), f(velocity), f(counts), f(found);
  }
};

enum class CodeHow : std::uint8_t { Signs, Bytes, Segments };
// Decodes `count` elements to y. With `adds`, every part encodes the same elements: y[i] is the sum of element i of all parts, 0 for i >=
// used. Without, the parts follow one another: y[i] is element i mod length of part i / length. `accumulates`: the result is added to y.
struct DecodeArgs {
  View codes, y;
  std::int64_t count, used, length, parts, part_words, segments;
  int bits;
  CodeHow how;
  bool adds, accumulates;
  template <class F>
  void each(F f) const {
    f(codes), f(y);
  }
};
struct PairsArgs {  // decodes Code::Largest of one part: y[position] += number, for all `kept` pairs
  View codes, y;
  std::int64_t kept;
  template <class F>
  void each(F f) const {
    f(codes), f(y);
  }
};

// Selects tokens by score: scores [sample, part, token] -> tokens_kept [sample, part, kept], int64, ascending positions in the sample. The
// first token of a sample is always kept.
struct KeepTokensArgs {
  View scores, tokens_kept;
  std::int64_t tokens, kept, parts;  // tokens and kept ones of a part
  template <class F>
  void each(F f) const {
    f(scores), f(tokens_kept);
  }
};
// Copies the rows of kept tokens; rows are ordered [position, sample] and have h elements. `takes`: from all rows (x) to the kept rows (y);
// else back. The rows are those of part `part` of `parts` of the sequence, which begins at `first`.
struct KeptRowsArgs {
  View x, tokens, y;
  std::int64_t samples, kept, h, parts, part, first;
  bool takes, accumulate;
  template <class F>
  void each(F f) const {
    f(x), f(tokens), f(y);
  }
};

}  // namespace foreshard::gpu
