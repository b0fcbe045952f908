// The order in which the gradient sums of the last micro-batch are issued, where units that the next forward needs first have priority
// (sum_order.h). Internal to strategy/.
#pragma once

#include <cstdint>
#include <vector>

#include "strategy/program/chunk_frame.h"
#include "strategy/state/model_state.h"

namespace foreshard {

struct SumPart {
  int unit = 0;
  std::int64_t first = 0, elements = 0;  // the elements [first, first + elements) of the unit
  bool last = false;                     // the last part of its unit
};

// The parts of all units whose rows are updated beside the next forward, in the order of schedule_sums; empty: no row is. Its times are
// rough, which is enough for an order: a roofline of the operators, and rings over the path between the replicas that are furthest apart.
std::vector<SumPart> order_of_sums(const ChunkFrame& frame, const ChunkState& state);

}  // namespace foreshard
