// Which blocks of memory are alive at the same time, from their lifetimes (packing.h).
#pragma once

#include <span>
#include <vector>

#include "strategy/memory/block_pairs.h"
#include "strategy/memory/packing.h"

namespace foreshard {

// The begin or the end of a lifetime.
struct LifetimeEdge {
  std::int64_t time = 0;
  bool begins = false;
  int block = 0;
};
// All begins and ends in the order of time; at equal times the ends come first. Empty lifetimes are left out.
std::vector<LifetimeEdge> lifetime_edges(std::span<const TimedBlock> blocks);
// The two steps of lifetime_edges().
void add_edges(std::vector<LifetimeEdge>& edges, const Lifetime& life, int block);
void sort_edges(std::vector<LifetimeEdge>& edges);

// The pairs of blocks that have overlapping lifetimes.
BlockPairs overlaps(std::span<const TimedBlock> blocks);
BlockPairs overlaps(std::size_t blocks, const std::vector<LifetimeEdge>& edges);  // edges: lifetime_edges of this many blocks
// The same as lists. [block]: the other blocks, ascending.
std::vector<std::vector<int>> meetings(std::span<const TimedBlock> blocks);

// The sets of blocks that are alive at one time, each ascending, in the order of time. Only the sets right before a block ends after others
// have begun; every other such set is contained in one of them.
std::vector<std::vector<int>> alive_sets(std::span<const TimedBlock> blocks);

}  // namespace foreshard
