// Which blocks hold the gradients of activations during the backward of a chunk, from the gradient received to the gradient sent. Internal
// to strategy/.
//
// `state` is that of the segment being built; the index of a gradient is its index into state.held. Several values may share a gradient.
#pragma once

#include <vector>

#include "strategy/lower/backward_state.h"
#include "strategy/lower/operator_emitter.h"

namespace foreshard {

class GradientFlow {
 public:
  GradientFlow(const ChunkFrame& frame, ChunkValues& values, const OperatorEmitter& emit)
      : frame_(frame), values_(values), emit_(emit) {}

  // A segment may have to be built twice. The gradient that leaves the chunk may be the block in which a later layer began a sum, and only
  // the end of the first building shows which. The second building puts that gradient into the ring of gradients to send, and the
  // gradients that deferred weight gradients read into blocks that outlive the segment.
  void begin_trial();                           // call before the first building, whose blocks are provisional
  bool learn(const BackwardState& at_the_end);  // call after it: whether a second building is needed

  // The output gradient of the chunk arrives, its input gradient leaves: by a transfer, or by a copy between two stages on one rank.
  void receive(SegmentBuilder& out, BackwardState& state);
  void send(SegmentBuilder& out, BackwardState& state);

  bool arrives() const;  // whether the output of the chunk has a gradient; not where nothing up to it is trained
  // Whether the value needs a gradient. The input of the model does not.
  bool wants(int layer, int value) const;
  // Gives `value` a new gradient and returns its index. The block is a shared one of its kind of layer in which no live gradient lies, or
  // the ring of gradients to send if this gradient leaves the chunk.
  int fresh(int layer, int value, BackwardState& state);
  // Copies the gradient of `value` into a block of its own if other values share it: call before adding to it.
  void own(SegmentBuilder& out, int layer, int value, BackwardState& state);
  // The backward of an operator without a gradient kernel (a residual sum): passes the gradient of its result to all its inputs.
  void pass_all(SegmentBuilder& out, int layer, int op, BackwardState& state);
  // Gradient `from` becomes the gradient of `value`, without a copy, or is added to the one it has.
  void pass(SegmentBuilder& out, int layer, int value, int from, BackwardState& state);
  // `value` had gradient `known` before another part of its gradient was computed in `block`: adds the part to it and releases the block.
  void add_beside(SegmentBuilder& out, int layer, int value, int known, const Block& block, BackwardState& state);
  // The gradient of `value` (of the current layer) is no longer needed; releases the block if no other value shares it.
  void drop(SegmentBuilder& out, int value, BackwardState& state);
  // Releases the block; for a ring, also records the event that its slot is free.
  void release(SegmentBuilder& out, const Block& block);

 private:
  void add(SegmentBuilder& out, const ChunkLayer& layer, int value, const Block& block, BackwardState& state);

  ChunkFrame frame_;
  ChunkValues& values_;
  const OperatorEmitter& emit_;
  int sent_ = -1;                // index of the gradient that leaves the chunk; -1: not known
  bool trying_ = false;          // the first building is under way
  std::vector<char> kept_ = {};  // [gradient]: the segment of weight gradients reads it
};

}  // namespace foreshard
