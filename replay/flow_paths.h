// FlowPaths: how the clock times a flow class: as a transfer over the few links that can limit it, or isolated, by its closed
// formula.
#pragma once

#include <cstdint>
#include <vector>

#include "replay/quotient.h"

namespace foreshard::player {

// The stream that carries all instructions of a slot, per [role][slot]; kNoStream: unused, kManyStreams: more than one.
inline constexpr int kNoStream = -1, kManyStreams = -2;
using SlotStreams = std::vector<std::vector<int>>;
SlotStreams slot_streams(const Plan& plan, const Patterns& patterns);

struct FlowPath {
  // All other transfers on its bottleneck links are issued by the same stream of the same rank, so they never overlap with it:
  // the flow takes bytes * seconds_per_byte. Exclusive: the same holds for all links that it crosses.
  bool isolated = false, exclusive = false;
  // Else the same holds in all actions of its parties' role before this one, in the first run: what else crosses its links is issued
  // there for the first time, behind what the flow's own stream has done by then. 0: in none.
  std::int32_t exclusive_before = 0;
  double seconds_per_byte = 0;
  std::vector<int> route = {};  // engine links, repeated as often as the flow counts; when not isolated
};

struct FlowPaths {
  std::vector<BytesPerSecond> links = {};  // to create in the engine, in this order
  std::vector<FlowPath> of_flow = {};      // [flow class]
};

FlowPaths find_flow_paths(const Plan& plan, const Ranks& ranks, const Patterns& patterns, const Flows& flows,
                          const Quotient& quotient);

}  // namespace foreshard::player
