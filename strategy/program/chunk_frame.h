// A chunk (the layers of one pipeline stage on one rank), and where its program is written. Internal to strategy/.
#pragma once

#include <string>

#include "strategy/program/lowering.h"

namespace foreshard {

inline constexpr StreamId kComputeStream{0};  // of every role; the others are named by rows of CommunicationPolicy

inline Use whole(const Block& block) { return {.buffer = block.buffer, .slot = block.slot}; }

struct ChunkFrame {
  Lowering& lowering;
  Role& role;
  int rank = 0, chunk = 0, stage = 0;  // the stage is chunk `chunk` of pipeline rank `rank`

  int first_layer() const { return lowering.first_layer(stage); }
  int layers() const { return lowering.layers_of(stage); }
  bool first_stage() const { return lowering.tables.schedule.is_first(stage); }
  bool last_stage() const { return lowering.tables.schedule.is_last(stage); }
  bool splits() const { return lowering.tables.schedule.splits; }  // backwards come in two halves
  // Of the updates of this stage; without effect where its gradients are late by less than two updates.
  ops::DelayedRate delayed_rate() const {
    const std::int64_t steps = lowering.tables.update.delay_annealing;
    const std::vector<int>& delays = lowering.tables.schedule.delays;
    const int delay = delays.empty() ? 0 : delays[static_cast<std::size_t>(rank)];
    return steps > 0 && delay > 1 ? ops::DelayedRate{.delay = delay, .annealed_over = steps} : ops::DelayedRate{};
  }
  const CommunicationRow& way(Purpose purpose) const { return lowering.communication(purpose, chunk); }
  // Of copies between where something is at home and where it is used. `out`: from the device to the host, or from host memory to a drive.
  const CommunicationRow& copy_way(Space home, bool out) const {
    using enum Purpose;
    return way(home == Space::Nvme ? (out ? WriteDrive : ReadDrive) : (out ? CopyToHost : CopyFromHost));
  }

  // Appended to the role; the name gets the chunk's number.
  BufferId add_buffer(const std::string& name, Category category, DType dtype, Bytes bytes, int slots) const;
  EventId add_event(const std::string& name, int slots) const;
};

}  // namespace foreshard
