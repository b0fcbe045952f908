// Losses, at which the backward begins.
#pragma once

#include "core/op/op.h"
#include "core/op/sequence_part.h"

namespace foreshard::ops {

// Cross-entropy over the last dimension. Shapes {rows, columns}. Whole: logits -> softmax (in the format of statistics), targets, loss.
// If tensor-parallel ranks share the vocabulary, three pieces with reductions between them:
//   Max   logits -> maximum of each row; then an all-reduce of the maxima
//   Exp   logits, maximum -> exp(logits - maximum), sums [.., 2], targets; then an all-reduce of the sums. sums[.., 0]: of the
//         exponentials; sums[.., 1]: the target's logit if this rank has its column, else 0. Its input gradient is that of the loss
//   Loss  sums, maximum -> loss
struct CrossEntropy : OperatorTraits {
  enum class Piece : std::uint8_t { Whole, Max, Exp, Loss };
  enum class Target : std::uint8_t { NextToken, Label, NextSentence };  // Label, NextSentence: one target per sample
  Piece piece = Piece::Whole;
  Target target = Target::NextToken;
  std::int64_t classes = 0;  // columns from this one on are padding
  SequenceSplit split = {};  // the rows are those of this context-parallel rank
  std::int64_t ahead = 0;    // the target lies this number of positions after the next token (multi-token prediction)
  double weight = 1;         // factor of this loss in the loss of the model

  static constexpr const char* kWord = "cross_entropy";
  static constexpr int kFirstSettings = 5;
  static constexpr bool depends_on_microbatch = true;
  static constexpr bool loss = true;
  template <class Self, class Visit>
  static void fields(Self& self, Visit&& visit) {
    visit("piece", self.piece), visit("target", self.target), visit("classes", self.classes);
    visit("cp", self.split.ranks), visit("chunks", self.split.chunks);
    visit("ahead", self.ahead), visit("weight", self.weight);
  }
  Saved saved() const {
    if (piece == Piece::Whole) return {.outputs = kFirst | kSecond};
    return piece == Piece::Exp ? Saved{.outputs = kAll} : Saved{};
  }
  Works works(const Sizes& sizes) const {
    Bytes forward = {};
    for (const Bytes part : sizes.outputs) forward += part;
    switch (piece) {
      case Piece::Whole:  // reads the logits twice: for the sums, and to write the softmax; the loss is one number
        return {.forward = {{}, 2 * sizes.inputs[0] + sizes.outputs[0] + sizes.outputs[1]},
                .input_grad = {{}, sizes.outputs[0] + sizes.inputs[0]}};
      case Piece::Max: return {.forward = {{}, sizes.inputs[0] + forward}};
      case Piece::Exp:
        return {.forward = {{}, sizes.inputs[0] + forward}, .input_grad = {{}, sizes.outputs[0] + sizes.inputs[0]}};
      case Piece::Loss: return {.forward = {{}, sizes.inputs[0] + sizes.inputs[1]}};
    }
    return {};
  }
  PartialSums partial_sums(Phase phase) const {
    return piece == Piece::Exp && is_forward(phase) ? PartialSums{.summed_columns = 1} : PartialSums{};
  }
  static bool takes_loss_scale(Phase phase) { return phase == Phase::InputGrad; }
  bool writes_loss() const { return piece == Piece::Whole || piece == Piece::Loss; }
  bool operator==(const CrossEntropy&) const = default;
};

// y -> the sum of its squares. Shapes: dimensions of y.
struct SumOfSquares : OperatorTraits {
  static constexpr const char* kWord = "sum_of_squares";
  static constexpr bool loss = true, reads_sums = true;
  template <class Self, class Visit>
  static void fields(Self&, Visit&&) {}
  static Saved saved() { return {.inputs = kFirst}; }
  static Works works(const Sizes& sizes) { return {.forward = {{}, sizes.inputs[0]}, .input_grad = {{}, 2 * sizes.inputs[0]}}; }
  static bool takes_loss_scale(Phase phase) { return phase == Phase::InputGrad; }
  static bool writes_loss() { return true; }
  bool operator==(const SumOfSquares&) const = default;
};

}  // namespace foreshard::ops
