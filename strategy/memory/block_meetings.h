// Which blocks are alive together.
#pragma once

#include <span>
#include <vector>

#include "strategy/memory/packing.h"

namespace foreshard {

// One end of a lifetime, in the order of time; what ends makes room for what begins at the same time.
struct LifetimeEdge {
  std::int64_t time = 0;
  bool begins = false;
  int block = 0;
};
std::vector<LifetimeEdge> lifetime_edges(std::span<const TimedBlock> blocks);

// [block]: the other blocks that are alive during one of its lifetimes, ascending.
std::vector<std::vector<int>> meetings(std::span<const TimedBlock> blocks);

// The sets of blocks that are alive at one time; only the largest of what grows and shrinks.
std::vector<std::vector<int>> alive_sets(std::span<const TimedBlock> blocks);

}  // namespace foreshard
