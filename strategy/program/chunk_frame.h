// A chunk (the layers of one pipeline stage on one rank) and the role that its buffers, events and instructions are added to. Internal to
// strategy/.
#pragma once

#include <string>

#include "strategy/program/lowering.h"

namespace foreshard {

inline constexpr StreamId kComputeStream{0};  // of every role; other streams are found by CommunicationPolicy::row

// A use (read or write) of all bytes of a block.
inline Use whole(const Block& block) { return {.buffer = block.buffer, .slot = block.slot}; }

struct ChunkFrame {
  Lowering& lowering;
  Role& role;
  int rank = 0, chunk = 0, stage = 0;  // pipeline rank, chunk of it, and the stage that this chunk holds

  int first_layer() const { return lowering.first_layer(stage); }  // layer of the op graph
  int layers() const { return lowering.layers_of(stage); }         // number of layers
  bool first_stage() const { return lowering.tables.schedule.is_first(stage); }
  bool last_stage() const { return lowering.tables.schedule.is_last(stage); }
  bool splits() const { return lowering.tables.schedule.splits; }  // backwards are split into input and weight gradients
  // Learning rate of this stage's updates (Update::delay_annealing); no effect where its gradients are late by less than two updates.
  ops::DelayedRate delayed_rate() const {
    const std::int64_t steps = lowering.tables.update.delay_annealing;
    const std::vector<int>& delays = lowering.tables.schedule.delays;
    const int delay = delays.empty() ? 0 : delays[static_cast<std::size_t>(rank)];
    return steps > 0 && delay > 1 ? ops::DelayedRate{.delay = delay, .annealed_over = steps} : ops::DelayedRate{};
  }
  const CommunicationRow& way(Purpose purpose) const { return lowering.communication(purpose, chunk); }
  // The row for copies of a tensor whose home is `home`. `out`: from the device to the host, or from host memory to a drive.
  const CommunicationRow& copy_way(Space home, bool out) const {
    using enum Purpose;
    return way(home == Space::Nvme ? (out ? WriteDrive : ReadDrive) : (out ? CopyToHost : CopyFromHost));
  }

  // Append a buffer of `slots` slots of `bytes` each, or an event with `slots` slots, to the role. The chunk's number is added to the name.
  BufferId add_buffer(const std::string& name, Category category, DType dtype, Bytes bytes, int slots) const;
  EventId add_event(const std::string& name, int slots) const;
};

}  // namespace foreshard
