// The backward of a chunk: goes through the forward operators in reverse, redoes what was not kept, passes gradients on. Internal to
// strategy/.
#pragma once

#include <vector>

#include "strategy/lower/activation_moves.h"
#include "strategy/lower/gradient_flow.h"
#include "strategy/state/state_program.h"

namespace foreshard {

struct BackwardVariant {
  Work half = Work::B;       // or I, or W
  bool accumulates = false;  // not the first micro-batch of the run
  bool last = false;         // of the run
};

class BackwardProgram {
 public:
  BackwardProgram(const ChunkFrame& frame, ChunkValues& values, ActivationMoves& moves, StateProgram& state,
                  OperatorEmitter& emit, GradientFlow& flow)
      : frame_(frame), values_(values), moves_(moves), state_(state), emit_(emit), flow_(flow) {}

  void run_layers(SegmentBuilder& out, const BackwardVariant& variant, BackwardState& state);
  // One operator. Of a recomputation schedule what it reads is there already.
  void run(SegmentBuilder& out, int layer, int op, const BackwardVariant& variant, BackwardState& state);

  bool reads_parameters(const ChunkLayer& layer) const;

  // Input and weight gradients apart (backward_split.cpp): `state` is what the segment of input gradients left.
  void join_kept(SegmentBuilder& out, const BackwardState& state) const;
  Segment weights(const BackwardVariant& variant, BackwardState state);

 private:
  void run_layer(SegmentBuilder& out, int layer, const BackwardVariant& variant, BackwardState& state);
  void communicate_back(SegmentBuilder& out, int layer, const Operator& op, BackwardState& state);
  void input_gradients(SegmentBuilder& out, int layer, int op, const BackwardVariant& variant, BackwardState& state);
  void weight_gradients(SegmentBuilder& out, int layer, int op, const BackwardVariant& variant, BackwardState& state);
  void write_weight_gradients(Instruction& run, int layer, const Operator& op, const BackwardVariant& variant,
                              BackwardState& state);
  void redo_for(SegmentBuilder& out, int layer, const std::vector<int>& values, BackwardState& state);
  void redo(SegmentBuilder& out, int layer, int op, BackwardState& state);
  void used(SegmentBuilder& out, int layer, int value, BackwardState& state);
  std::vector<int> saved_now(const ChunkLayer& layer, const Operator& op, Work half) const;
  bool lends_embedding(const ParameterPlace& place) const;
  void defer(int layer, int op, BackwardState& state);
  void leave_layer(int layer, BackwardState& state);
  void deferred_gradients(SegmentBuilder& out, const Deferred& deferred, const BackwardVariant& variant, BackwardState& state);

  ChunkFrame frame_;
  ChunkValues& values_;
  ActivationMoves& moves_;
  StateProgram& state_;
  OperatorEmitter& emit_;
  GradientFlow& flow_;
};

}  // namespace foreshard
