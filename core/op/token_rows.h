// Operators that keep only the rows of the tokens with the most attention, so that tensor-parallel ranks sum fewer rows
// (docs/compression.md). Rows of a value are ordered [position, sample].
//
//   probabilities -> TokenScores -> sum over the ranks' heads -> KeepTokens -> the same rows on every rank
//   x -> TakeRows -> sum over the ranks -> PutRows -> y, rows that were not kept are 0
//
// With sequence parallelism each of tp ranks has one of `parts` = tp equal parts of the sequence. Equally many tokens are kept in each
// part, so that the sum is a reduce-scatter of the kept rows, and PutRows puts those of the rank's part into it.
#pragma once

#include "core/op/op.h"

namespace foreshard::ops {

// Attention probabilities [b, heads, queries, keys] -> scores [b, keys] in the format of statistics: the sum over heads and queries. A
// rank sums over its own heads, so the result is a partial sum. Shapes {b, heads, queries, keys}.
struct TokenScores : OperatorTraits {
  static constexpr const char* kWord = "token_scores";
  template <class Self, class Visit>
  static void fields(Self&, Visit&&) {}
  static Saved saved() { return {}; }
  static Works works(const Sizes& sizes) { return {.forward = {{}, sizes.inputs[0] + sizes.outputs[0]}}; }
  static PartialSums partial_sums(Phase) { return {.summed_columns = 0}; }
  bool operator==(const TokenScores&) const = default;
};

// scores [b, s] -> kept [b, k] (int64): ascending positions of the first token and of the k - 1 others with the largest scores, among equal
// scores the first. With `parts`, of each part of s / parts tokens the k / parts with the largest scores. Shapes {b, s, k}.
struct KeepTokens : OperatorTraits {
  std::int64_t parts = 1;  // divides s and k
  static constexpr const char* kWord = "keep_tokens";
  template <class Self, class Visit>
  static void fields(Self& self, Visit&& visit) {
    visit("parts", self.parts);
  }
  static Saved saved() { return {}; }
  static Works works(const Sizes& sizes) { return {.forward = {{}, sizes.inputs[0] + sizes.outputs[0]}}; }
  bool operator==(const KeepTokens&) const = default;
};

// TakeRows: x [b, s, h], kept [b, k] -> the kept rows [b, k, h]. PutRows: rows [b, k, h], kept -> y [b, s, h] with 0 in the other rows. The
// gradient of each is the other. With `parts`, x and y are the rank's part of the sequence, s tokens of which k are kept, and kept [b,
// parts x k] has the positions in the whole sequence. Shapes {b, s, k, h}.
template <bool takes>
struct KeptRows : OperatorTraits {
  std::int64_t parts = 1;
  static constexpr const char* kWord = takes ? "take_rows" : "put_rows";
  template <class Self, class Visit>
  static void fields(Self& self, Visit&& visit) {
    visit("parts", self.parts);
  }
  static Saved saved() { return {.inputs = kSecond}; }
  static Works works(const Sizes& sizes) {
    const Bytes rows = takes ? sizes.outputs[0] : sizes.inputs[0], all = takes ? sizes.inputs[0] : sizes.outputs[0];
    const OpWork take = {{}, rows * 2 + sizes.inputs[1]}, put = {{}, rows + all + sizes.inputs[1]};
    return takes ? Works{.forward = take, .input_grad = put} : Works{.forward = put, .input_grad = take};
  }
  static PartialSums partial_sums(Phase) { return {.pass = true}; }
  bool operator==(const KeptRows&) const = default;
};
using TakeRows = KeptRows<true>;
using PutRows = KeptRows<false>;

}  // namespace foreshard::ops
