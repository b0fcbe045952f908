// The backward of a chunk: goes through the forward operators in reverse order, recomputes values that were not kept, and computes the
// gradients of activations and parameters. Internal to strategy/.
#pragma once

#include <vector>

#include "strategy/lower/activation_moves.h"
#include "strategy/lower/gradient_flow.h"
#include "strategy/state/state_program.h"

namespace foreshard {

// Which of the backward segments of a chunk is built.
struct BackwardVariant {
  Work half = Work::B;       // B: unsplit backward, I: input gradients only, W: weight gradients only
  bool accumulates = false;  // adds to the parameters' gradients: any micro-batch of an update but its first
  bool last = false;         // the last micro-batch of an update
};

class BackwardProgram {
 public:
  BackwardProgram(const ChunkFrame& frame, ChunkValues& values, ActivationMoves& moves, StateProgram& state,
                  OperatorEmitter& emit, GradientFlow& flow)
      : frame_(frame), values_(values), moves_(moves), state_(state), emit_(emit), flow_(flow) {}

  void run_layers(SegmentBuilder& out, const BackwardVariant& variant, BackwardState& state);
  // The begin of a layer's backward, before its last operator: its output has the gradient of the border, and places for the gradients of its
  // parameters hold what earlier micro-batches left. The end, after its first operator: gradients that are complete are summed.
  void begin_layer(SegmentBuilder& out, int layer, const BackwardVariant& variant, BackwardState& state);
  void end_layer(SegmentBuilder& out, int layer, const BackwardVariant& variant, BackwardState& state);
  // The backward of one operator. Recomputes what it reads, unless a recomputation schedule has done so already.
  void run(SegmentBuilder& out, int layer, int op, const BackwardVariant& variant, BackwardState& state);

  // Whether the backward of the layer, recomputation included, reads parameters.
  bool reads_parameters(const ChunkLayer& layer) const;

  // For backwards split into input and weight gradients (backward_split.cpp); `state` is that at the end of the segment of input gradients.
  // join_kept makes the compute stream wait for other streams' uses of what the weight gradients read; weights() builds the second segment.
  void join_kept(SegmentBuilder& out, const BackwardState& state) const;
  Segment weights(const BackwardVariant& variant, BackwardState state);

 private:
  void run_layer(SegmentBuilder& out, int layer, const BackwardVariant& variant, BackwardState& state);
  void communicate_back(SegmentBuilder& out, int layer, const Operator& op, BackwardState& state);
  void input_gradients(SegmentBuilder& out, int layer, int op, const BackwardVariant& variant, BackwardState& state);
  void weight_gradients(SegmentBuilder& out, int layer, int op, const BackwardVariant& variant, BackwardState& state);
  void write_weight_gradients(Instruction& run, int layer, const Operator& op, const BackwardVariant& variant,
                              BackwardState& state);
  // Adds the parameter to what `run` reads. The version that the forward of the micro-batch has read is there; a newer one is waited for.
  void read_weight(Instruction& run, int layer, int weight);
  void redo_for(SegmentBuilder& out, int layer, const std::vector<int>& values, BackwardState& state);  // recomputes these
  void redo(SegmentBuilder& out, int layer, int op, BackwardState& state);
  void used(SegmentBuilder& out, int layer, int value, BackwardState& state);  // one backward read done; the last one frees it
  std::vector<int> saved_now(const ChunkLayer& layer, const Operator& op, Work half) const;  // what backward `half` reads
  bool lends_embedding(const ParameterPlace& place) const;  // a tied last stage on this rank writes its gradient first
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
