// What the kernels of codes and kept tokens are told.
#pragma once

#include "exec/cuda/kernel_args.h"

namespace foreshard::gpu {

struct CodeSourceArgs {  // left = [left +] x', x' = [momentum velocity +] rest x [+ beta moment]; velocity: its new value
  View x, moment, velocity, left;
  std::int64_t count;
  float rest, beta, momentum;
  bool adds;
  template <class F>
  void each(F f) const {
    f(x), f(moment), f(velocity), f(left);
  }
};

// An array in parts of `length`, each with `part_words` words of codes (core/op/codec.h). left: what the code leaves out, may be x itself.
struct CodeArgs {
  View x, codes, left, ranges, counts;  // ranges: [part, chunk, 2], counts: [part, chunk, bin]
  std::int64_t elements, length, part_words, per_chunk, segments;
  int bits;
  template <class F>
  void each(F f) const {
    f(x), f(codes), f(left), f(ranges), f(counts);
  }
};

struct LargestOfArgs {
  View x, codes, left, velocity, counts, found;
  std::int64_t elements, kept, per_chunk;
  int shift;
  template <class F>
  void each(F f) const {
    f(x), f(codes), f(left), f(velocity), f(counts), f(found);
  }
};

enum class CodeHow : std::uint8_t { Signs, Bytes, Segments };
// y[i] (+)= number i of the parts, or the sum of the numbers i of all parts where i < used, else 0
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
struct PairsArgs {  // y[place] += number
  View codes, y;
  std::int64_t kept;
  template <class F>
  void each(F f) const {
    f(codes), f(y);
  }
};

struct KeepTokensArgs {  // [sample, token] -> [sample, kept]
  View scores, tokens_kept;
  std::int64_t tokens, kept;
  template <class F>
  void each(F f) const {
    f(scores), f(tokens_kept);
  }
};
struct KeptRowsArgs {  // rows [position, sample]
  View x, tokens, y;
  std::int64_t samples, kept, h;
  bool takes, accumulate;
  template <class F>
  void each(F f) const {
    f(x), f(tokens), f(y);
  }
};

}  // namespace foreshard::gpu
