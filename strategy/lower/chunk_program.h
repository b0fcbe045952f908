// The segments of one chunk (the layers of one pipeline stage): forward and backward of a micro-batch, and the end of the run, each made by
// the part that knows it:
//
//   ChunkValues       where values live                 OperatorEmitter   an operator's instructions
//   ForwardProgram    the forward                       BackwardProgram   the backward, and what it makes again
//   GradientFlow      gradients of activations          StateProgram      parameters, gradients, optimizer states
//   ActivationMoves   activations at home elsewhere
//   RunPlayer         both directions in the order of a recomputation schedule
//   OperatorParts     what of an instruction works on a part of the samples (cut_segment.h)
#pragma once

#include "strategy/lower/operator_parts.h"
#include "strategy/lower/run_player.h"

namespace foreshard {

class ChunkProgram {
 public:
  // Appends the chunk's buffers and events to the frame's role.
  ChunkProgram(const ChunkFrame& frame, const ChunkSlots& slots, ActivationPool& pool);
  ChunkProgram(const ChunkProgram&) = delete;  // its parts know each other

  // The chunks of the stages before and after this one, where they are on the same rank.
  void meet(const ChunkProgram* before, const ChunkProgram* after);

  Segment forward(const ForwardVariant& variant);
  Segment backward(const BackwardVariant& variant);  // W: after an I was built
  Segment finish() { return state_.finish(); }
  Segment measure(bool first) { return state_.measure(first); }
  Segment gather() { return state_.gather_all(); }

 private:
  std::vector<Param> params() const;
  Slot weights_slot() const;
  std::vector<UnitUse> visits() const;  // of layers whose parameters are read: a forward, then a backward
  Segment build_backward(const BackwardVariant& variant);

  ChunkFrame frame_;
  StateProgram state_;
  ChunkValues values_;
  OperatorParts parts_;
  ActivationMoves moves_;
  OperatorEmitter emit_;
  ForwardProgram forward_;
  GradientFlow flow_;
  BackwardProgram backward_;
  RunPlayer player_;
  BackwardState left_ = {};  // by the last backward
};

}  // namespace foreshard
