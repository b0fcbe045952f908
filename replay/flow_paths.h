// FlowPaths: how the clock times each flow class: as a transfer over the few links that can limit it or, if no other transfer can slow it,
// as bytes * seconds_per_byte.
#pragma once

#include <cstdint>
#include <vector>

#include "replay/quotient.h"

namespace foreshard::player {

// [role][slot]: the stream that carries all instructions of the slot; kNoStream: the role does not use it, kManyStreams: more than one.
inline constexpr int kNoStream = -1, kManyStreams = -2;
using SlotStreams = std::vector<std::vector<int>>;
SlotStreams slot_streams(const Plan& plan, const Patterns& patterns);

struct FlowPath {
  // Isolated: all other transfers on the links that can limit it are issued by the same stream of the same rank, so they never overlap
  // with it, and the flow takes bytes * seconds_per_byte. Exclusive: the same holds for all links that it crosses.
  bool isolated = false, exclusive = false;
  // Of a flow that is not exclusive, if the plan runs once: in actions of its parties' role before this one it is exclusive, because other
  // traffic on its links is issued in this action for the first time, after what the flow's own stream has done by then. 0: in none.
  std::int32_t exclusive_before = 0;
  double seconds_per_byte = 0;
  std::vector<int> route = {};  // links of the clock, each repeated by the flow's weight on it; empty when isolated
};

struct FlowPaths {
  std::vector<BytesPerSecond> links = {};  // to be added to the clock, in this order
  std::vector<FlowPath> of_flow = {};      // [flow class]
};

FlowPaths find_flow_paths(const Plan& plan, const Ranks& ranks, const Patterns& patterns, const Flows& flows,
                          const Quotient& quotient);

}  // namespace foreshard::player
