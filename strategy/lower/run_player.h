// Builds the segments of a chunk under a recomputation schedule: its operators in the order of ChunkValues::runs (recompute_runs.h), which
// may run a forward several times. Internal to strategy/.
#pragma once

#include <vector>

#include "strategy/lower/backward_program.h"
#include "strategy/lower/forward_program.h"

namespace foreshard {

class RunPlayer {
 public:
  RunPlayer(const ChunkFrame& frame, ChunkValues& values, StateProgram& state, OperatorEmitter& emit,
            BackwardProgram& backward);

  // The order in which forward() and backward() read the parameters of layers. Consecutive operators of one layer are one use.
  std::vector<UnitUse> visits() const;
  void forward(SegmentBuilder& out, const ForwardVariant& variant);
  void backward(SegmentBuilder& out, const BackwardVariant& variant, BackwardState& state);

 private:
  Block& now_at(int layer, int value);  // where the value lies at this point of the schedule
  // `run` is an index into the schedule.
  void play(SegmentBuilder& out, int run, const ForwardVariant& variant);
  void play_back(SegmentBuilder& out, int run, const BackwardVariant& variant, BackwardState& state);
  void end_lives(SegmentBuilder& out, int run);
  void gather_for(SegmentBuilder& out, int layer, bool waits_for_parameters);
  void release_gather(SegmentBuilder& out);

  ChunkFrame frame_;
  ChunkValues& values_;
  StateProgram& state_;
  OperatorEmitter& emit_;
  BackwardProgram& backward_;
  std::vector<std::vector<Block>> now_ = {};  // [layer][value]: the block of its newest life
  int gathered_layer_ = -1;                   // whose parameters are gathered (ZeRO 3); -1: none
};

}  // namespace foreshard
