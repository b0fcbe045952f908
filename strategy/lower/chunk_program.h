// The segments of one chunk (the layers of one pipeline stage): forward and backward of a micro-batch, and the update at the
// end of the run. Classes that do the work:
//
//   ChunkValues       where values live                 OperatorEmitter   an operator's instructions
//   ForwardProgram    the forward                       BackwardProgram   the backward and its recomputation
//   GradientFlow      gradients of activations          StateProgram      parameters, gradients, optimizer states
//   ActivationMoves   offloaded activations
//   RunPlayer         both directions in the order of a recomputation schedule
//   OperatorParts     cuts instructions along the samples of a micro-batch (cut_segment.h)
// delay_weight_gradients (strategy/program/delayed_gradients.h) may then reorder an unsplit backward.
#pragma once

#include "strategy/lower/operator_parts.h"
#include "strategy/lower/run_player.h"

namespace foreshard {

class ChunkProgram {
 public:
  // Appends the chunk's buffers and events to the frame's role.
  ChunkProgram(const ChunkFrame& frame, const ChunkSlots& slots, ActivationPool& pool);
  ChunkProgram(const ChunkProgram&) = delete;  // its members refer to one another

  // Sets the chunks of the stages before and after this one; null where that stage is on another rank or there is none.
  void meet(const ChunkProgram* before, const ChunkProgram* after);

  Segment receive();  // the input of a forward of variant `received`
  Segment forward(const ForwardVariant& variant);
  Segment backward(const BackwardVariant& variant);  // half W continues the half I that was built last
  // Updates and gathers of the parameters; state_program.h says what each segment holds.
  Segment finish(bool keeps) { return state_.finish(keeps); }
  Segment measure(bool first) { return state_.measure(first); }
  Segment gather() { return state_.gather_all(); }

 private:
  std::vector<Param> params() const;
  Slot weights_slot() const;
  std::vector<UnitUse> visits()
      const;  // layers whose parameters are read, in order: those of a forward, then those of a backward
  Segment build_backward(const BackwardVariant& variant);
  Segment delayed(Segment backward) const;

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
  BackwardState left_ = {};  // at the end of the backward that was built last
};

}  // namespace foreshard
