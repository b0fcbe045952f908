// The optimizer step of units whose states and processor are not in one memory: what the processor does not reach is copied to places
// beside it and back. Two places for each state, so that three units are under way. Internal to strategy/.
//
//   states in host memory, updated there       to host    | g0 | g1 | g2 |              g: gradients of a unit
//                                              host            | u0 | u1 | u2 |         u: update
//                                              from host            | p0 | p1 | p2 |    p: parameters
#pragma once

#include <array>
#include <optional>

#include "strategy/program/chunk_frame.h"
#include "strategy/program/segment_builder.h"
#include "strategy/state/model_state.h"

namespace foreshard {

struct UpdateStep {
  Instruction run = {};  // on blocks where they are at home; waits for the gradients, records that the parameters are there
  GroupId slice = {};    // of blocks that are larger than what the rank updates
  std::int64_t elements = 0;
  std::optional<Instruction> clip = {};  // of gradients that are away: where the update runs, before it
  std::optional<EventUse> gradients_taken = {};  // when they are beside the processor, for those who write the next ones
};

class UpdateMoves {
 public:
  // Of the units whose states are away, or of those whose states the row keeps: the device updates these. Appends the places to the role.
  UpdateMoves(const ChunkFrame& frame, const ChunkState& state, const StateRow& row, bool kept = false);

  // `backward_done`: an instruction behind the last one that reads the parameters; -1: in this segment, so that is known.
  // Once per segment, where the host clips: it reads the norm that was measured on the device.
  void bring_norm(SegmentBuilder& out, int backward_done);
  void add(SegmentBuilder& out, int unit, UpdateStep step, int backward_done);

 private:
  static constexpr int kStates = 5, kPlaces = 2;  // gradient, master, momentum, variance, value
  struct Places {
    BufferId buffer = {};  // invalid: the processor reaches the state at home
    EventId free = {};
  };
  static std::array<BufferId, kStates> homes(const StateUnit& unit) {
    return {unit.gradient, unit.master, unit.momentum, unit.variance, unit.value};
  }
  bool reaches(Space space) const {
    const bool on_host = space == Space::PinnedHost || space == Space::PageableHost;
    return processor_ == Processor::Device ? space == Space::Device : on_host;
  }
  Instruction copy(const Use& home, const Use& place, bool back, const UpdateStep& step) const;
  void on_processor(Instruction& run) const;
  const Buffer& buffer(BufferId id) const { return frame_.role.buffers[id.index()]; }

  ChunkFrame frame_;
  const ChunkState& state_;
  Processor processor_;
  int first_ = 0;  // unit
  std::array<Places, kStates> places_ = {};
  BufferId norm_ = {};  // in host memory; invalid: the host clips nothing
  EventId stored_ = {};  // [unit]: the states are at home again
};

}  // namespace foreshard
