// Where the gradients of activations live during the backward of a chunk: received, made, summed, shared, passed on, sent. Internal to
// strategy/.
#pragma once

#include <vector>

#include "strategy/lower/backward_state.h"
#include "strategy/lower/operator_emitter.h"

namespace foreshard {

class GradientFlow {
 public:
  GradientFlow(const ChunkFrame& frame, ChunkValues& values, const OperatorEmitter& emit)
      : frame_(frame), values_(values), emit_(emit) {}

  // The gradient that leaves the chunk may have been made in an early place and summed into ever since. Only at the end is it known
  // which; then the segment is built once more with that gradient in the ring that is sent from. Likewise the gradients that deferred
  // weight gradients read: they start in places that outlive the segment.
  void try_out();                               // a first building, in which places do not count yet
  bool learn(const BackwardState& at_the_end);  // whether there has to be a second one

  void receive(SegmentBuilder& out, BackwardState& state);
  void send(SegmentBuilder& out, BackwardState& state);

  bool wants(int layer, int value) const;
  // A block for the gradient of `value`; the one the layer's kind shares, in a place that no live gradient holds. Index into held.
  int fresh(int layer, int value, BackwardState& state);
  void own(SegmentBuilder& out, int layer, int value, BackwardState& state);  // a copy of its own, if other values share it
  void pass_all(SegmentBuilder& out, int layer, int op, BackwardState& state);
  void pass(SegmentBuilder& out, int layer, int value, int from, BackwardState& state);
  void add_beside(SegmentBuilder& out, int layer, int value, int known, const Block& block, BackwardState& state);
  void drop(SegmentBuilder& out, int value, BackwardState& state);
  void release(SegmentBuilder& out, const Block& block);

 private:
  void add(SegmentBuilder& out, const ChunkLayer& layer, int value, const Block& block, BackwardState& state);

  ChunkFrame frame_;
  ChunkValues& values_;
  const OperatorEmitter& emit_;
  int sent_ = -1;                // of its gradients, the one that leaves the chunk; -1: not known
  bool trying_ = false;          // to find that out
  std::vector<char> kept_ = {};  // [of its gradients]: weight gradients read it in a segment of their own
};

}  // namespace foreshard
