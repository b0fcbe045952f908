// A chunk under a recomputation schedule: forwards, some of them several times, and backwards in the order of its runs
// (recompute_runs.h). Internal to strategy/.
#pragma once

#include <vector>

#include "strategy/lower/backward_program.h"
#include "strategy/lower/forward_program.h"

namespace foreshard {

class RunPlayer {
 public:
  RunPlayer(const ChunkFrame& frame, ChunkValues& values, StateProgram& state, OperatorEmitter& emit,
            BackwardProgram& backward);

  // Of layers whose parameters are read, in order: what forward() and backward() make of the schedule.
  std::vector<UnitUse> visits() const;
  void forward(SegmentBuilder& out, const ForwardVariant& variant);
  void backward(SegmentBuilder& out, const BackwardVariant& variant, BackwardState& state);

 private:
  Block& now_at(int layer, int value);
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
  std::vector<std::vector<Block>> now_ = {};  // [layer][value]: where its newest life is
  int gathered_layer_ = -1;
};

}  // namespace foreshard
