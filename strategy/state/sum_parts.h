// The order in which the last micro-batch's sums of gradients leave, where what the next forward needs first goes first. Internal to strategy/.
#pragma once

#include <cstdint>
#include <vector>

#include "strategy/program/chunk_frame.h"
#include "strategy/state/model_state.h"

namespace foreshard {

struct SumPart {
  int unit = 0;
  std::int64_t first = 0, elements = 0;  // of the unit
  bool last = false;                     // of its unit
};

// Of units whose rows are updated beside the next forward. The order is that of schedule_sums, with times that are close enough for an
// order: operators by their FLOPs and bytes on the device, sums as a ring between the replicas that are furthest apart.
std::vector<SumPart> order_of_sums(const ChunkFrame& frame, const ChunkState& state);

}  // namespace foreshard
