// The forward of a chunk, layer by layer. Internal to strategy/.
#pragma once

#include <vector>

#include "strategy/lower/activation_moves.h"
#include "strategy/lower/operator_emitter.h"
#include "strategy/state/state_program.h"

namespace foreshard {

struct ForwardVariant {
  bool waits_for_parameters = false;  // first of the run: waits for the update of the parameters and their all-gather
  bool received = false;              // an action before it has received its input
};

class ForwardProgram {
 public:
  ForwardProgram(const ChunkFrame& frame, ChunkValues& values, ActivationMoves& moves, StateProgram& state,
                 OperatorEmitter& emit)
      : frame_(frame), values_(values), moves_(moves), state_(state), emit_(emit) {}

  // The three steps of a forward segment. The first stage receives nothing, the last one sends nothing; between two stages on one rank a
  // copy replaces the transfer.
  void receive_input(SegmentBuilder& out);
  // The first of them as a segment of its own, and what stands in its place in the forward. Only after add_events.
  void receive_ahead(SegmentBuilder& out);
  void await_input(SegmentBuilder& out);
  void add_events();  // to the role, where inputs are received ahead
  void run_layers(SegmentBuilder& out, const ForwardVariant& variant);
  void send_output(SegmentBuilder& out);

 private:
  void run_layer(SegmentBuilder& out, int layer, const ForwardVariant& variant);
  void run(SegmentBuilder& out, int layer, int op, const ForwardVariant& variant, std::vector<char>& live);
  void forget(SegmentBuilder& out, int layer, int value);

  ChunkFrame frame_;
  ChunkValues& values_;
  ActivationMoves& moves_;
  StateProgram& state_;
  OperatorEmitter& emit_;
  EventId input_here_ = {};  // [slot of the ring of inputs]: received by a segment of its own
};

}  // namespace foreshard
