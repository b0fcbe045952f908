// Operators at the start of a model: look-ups of tokens and positions in tables, and reading of samples.
#pragma once

#include "core/op/op.h"
#include "core/op/sequence_part.h"

namespace foreshard::ops {

// -> y, tokens (int64): the rows of the micro-batch's tokens, and the tokens. The weight holds this rank's rows of the vocabulary; a token
// of another rank's rows gives 0. Shapes {tokens, h, rows of the weight}.
struct TokenEmbedding : OperatorTraits {
  std::int64_t vocab = 0;    // not padded
  SequenceSplit split = {};  // the tokens are those of this context-parallel rank
  std::int64_t ahead = 0;    // the tokens are those this number of positions later (multi-token prediction)

  static constexpr const char* kWord = "token_embedding";
  static constexpr int kFirstSettings = 3;
  static constexpr bool depends_on_microbatch = true;
  template <class Self, class Visit>
  static void fields(Self& self, Visit&& visit) {
    visit("vocab", self.vocab), visit("cp", self.split.ranks), visit("chunks", self.split.chunks);
    visit("ahead", self.ahead);
  }
  static Saved saved() { return {.outputs = kSecond}; }
  static Works works(const Sizes& sizes) {
    const Bytes rows = sizes.count(0, 0) * sizes.count(0, 1) * size_of(sizes.param);
    // The weight gradient is accumulated: its rows are read and written.
    return {.forward = {{}, rows + sizes.outputs[0] + sizes.outputs[1]}, .weight_grad = {{}, sizes.outputs[0] + 2 * rows}};
  }
  static PartialSums partial_sums(Phase phase) {
    return is_forward(phase) ? PartialSums{.summed_dim = 0, .summed = kFirst} : PartialSums{};
  }
  bool operator==(const TokenEmbedding&) const = default;
};

// x -> x + row of the position + row of the token type. Weights [max positions, h], [types, h], each optional. Shapes: dimensions of x.
struct PositionEmbedding : OperatorTraits {
  bool positions = false, types = false;  // which tables it has
  bool sequence_parallel = false;         // the rows are the part of the sequence that this tensor-parallel rank holds
  SequenceSplit split = {};               // how context-parallel ranks share the positions

  static constexpr const char* kWord = "position_embedding";
  static constexpr bool depends_on_microbatch = true;
  template <class Self, class Visit>
  static void fields(Self& self, Visit&& visit) {
    visit("positions", self.positions), visit("types", self.types), visit("sequence_parallel", self.sequence_parallel);
    visit("cp", self.split.ranks), visit("chunks", self.split.chunks);
  }
  static Saved saved() { return {}; }
  static Works works(const Sizes& sizes) {
    const Bytes rows = sizes.count(0, 1) * sizes.count(0, 2) * size_of(sizes.param);
    return {.forward = {{}, 2 * sizes.inputs[0] + rows}, .weight_grad = {{}, sizes.inputs[0] + 2 * rows}};
  }
  bool operator==(const PositionEmbedding&) const = default;
};

// -> the samples of the micro-batch. Shapes: their dimensions.
struct Sample : OperatorTraits {
  static constexpr const char* kWord = "sample";
  static constexpr bool depends_on_microbatch = true;
  template <class Self, class Visit>
  static void fields(Self&, Visit&&) {}
  static Saved saved() { return {}; }
  static Works works(const Sizes& sizes) { return {.forward = {{}, sizes.outputs[0]}}; }
  bool operator==(const Sample&) const = default;
};

}  // namespace foreshard::ops
