// The optimizer step of units whose buffers are not all in the memory of the processor that updates them. Buffers that it cannot reach are
// copied to places (staging slots) in its memory and back. Each kind of buffer has two places, so that the copy in, the update and the copy
// back of different units overlap. Internal to strategy/.
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
  // The update, on blocks at their homes. It waits for the gradients and records when the parameters are updated.
  Instruction run = {};
  GroupId slice = {};         // the group over which blocks that hold more than this rank's part are sharded
  std::int64_t elements = 0;  // that this rank updates
  // For offloaded gradients: clips them, on the same processor, before the update.
  std::optional<Instruction> clip = {};
  // Recorded when the gradients are copied, so that their home may be written again.
  std::optional<EventUse> gradients_taken = {};
};

class UpdateMoves {
 public:
  // For the units whose states are offloaded; `kept`: for those whose states stay on the device, which then updates them. Appends the
  // places to the role.
  UpdateMoves(const ChunkFrame& frame, const ChunkState& state, const StateRow& row, bool kept = false);

  // `backward_done` of both functions: an instruction of this segment after which no backward reads the parameters; -1: the segment holds
  // the backward itself, and its order says so.
  // Copies the norm of the gradients, measured on the device, to the host where the host clips. Call it once per segment, before add().
  void bring_norm(SegmentBuilder& out, int backward_done);
  // Emits the copies to the processor, the clip, the update and the copies back of one unit.
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
  int first_ = 0;  // the first unit of these
  std::array<Places, kStates> places_ = {};
  BufferId norm_ = {};   // in host memory; invalid: the host clips nothing
  EventId stored_ = {};  // [unit]: the states are at home again
};

}  // namespace foreshard
