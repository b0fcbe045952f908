// Packing: chooses the offsets of blocks in an arena when their lifetimes are known before the run (dynamic storage allocation), so that
// blocks that are alive at one time do not overlap and the arena is small. NP-hard in general (Garey and Johnson 1979, problem SR2):
//
//   pack_equal      blocks of one size, by the left-edge algorithm; optimal
//   pack            any sizes: several greedy rules and a local search; no guarantee
//   pack_into       any sizes and a given capacity: a tree search that finds a packing, proves that there is none, or gives up
//   pack_smallest   any sizes: pack, then pack_into with smaller and smaller capacities
//
// live_bound() is a lower bound of every arena. Fragmentation is arena / live_bound - 1.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "core/base/units.h"
#include "strategy/memory/block_pairs.h"

namespace foreshard {

// A block is alive at every time t with begin <= t < end. Times may count anything that ascends: instructions, nanoseconds.
struct Lifetime {
  std::int64_t begin = 0, end = 0;
};

// A block may have several lifetimes; it has the same offset in all of them. `bytes` must be above zero.
struct TimedBlock {
  Bytes bytes = {};
  std::vector<Lifetime> lifetimes = {};
};

struct Packing {
  std::vector<Bytes> offsets = {};  // [block], multiples of the alignment
  Bytes arena = {};                 // end of the highest block, rounded up to the alignment
};

// The most bytes that are alive at one time, each block rounded up to the alignment.
Bytes live_bound(std::span<const TimedBlock> blocks, std::int64_t alignment = 1);

// For blocks of one size with one lifetime each (asserted).
Packing pack_equal(std::span<const TimedBlock> blocks, std::int64_t alignment = 1);

// The order in which a greedy rule places blocks, and where. First fit: at the lowest free offset. Best fit: in the smallest gap that is
// large enough, else above all blocks that are alive with it.
enum class PackRule : std::uint8_t {
  // First fit; largest first, equal ones in the given order (Pisarchyk and Lee 2020, arXiv 2001.03288, section 4.2).
  FirstFitSize,
  BestFitSize,      // largest first, of equal ones the longest-lived
  BestFitArea,      // largest bytes * duration first
  BestFitDuration,  // longest-lived first
  BestFitStart,     // in the order in which they begin, as an allocator that does not know the future
  BestFitGiven,     // in the given order
};
inline constexpr int kPackRules = 5;  // those that do not depend on the given order

Packing pack_by(std::span<const TimedBlock> blocks, PackRule rule, std::int64_t alignment = 1);

struct PackOptions {
  std::int64_t alignment = 1;
  // Steps of the local search for each rule: it places the blocks that reach the top of the arena before the others.
  int moves = 100;
  // With `meets`: the most tests of pairs that the local search may do, which bounds the time of packing.
  std::int64_t tests = 20'000'000;
  // With `meets`: also tries orders by the bytes that meet a block and by its end, and placing from the lowest offset up (after Sekiyama et
  // al. 2018, "Profile-guided memory optimization for deep neural networks", arXiv 1804.10001).
  bool thorough = false;
};

// The packing with the smallest arena among all rules and steps. Stops at the first one whose arena equals live_bound().
Packing pack(std::span<const TimedBlock> blocks, const PackOptions& options = {});

// A lower bound of every arena: the bytes of blocks of which every two are a pair of `meets` (a clique), the most of several that are grown
// greedily, larger blocks first. It can be above live_bound(): three blocks may meet pairwise at different times, and a block has one
// offset.
Bytes pairs_bound(std::span<const TimedBlock> blocks, const BlockPairs& meets, std::int64_t alignment = 1);

// The same as pack() where not all blocks whose lifetimes overlap are alive together: only those of a pair in `meets` may not share bytes.
// Tries every order by first fit and best fit, the given one too, and searches from the best few. Stops at the first arena of at most
// `enough`, or of pairs_bound(). With thousands of blocks it takes fewer moves.
Packing pack(std::span<const TimedBlock> blocks, const BlockPairs& meets, const PackOptions& options, Bytes enough);

enum class PackAnswer : std::uint8_t { Packed, Impossible, GaveUp };

struct PackSearch {
  PackAnswer answer = PackAnswer::GaveUp;
  Packing packing = {};    // only if Packed
  std::int64_t nodes = 0;  // nodes of the search tree: placements that were tried
};

// Searches for a packing into `capacity` bytes (after Moffitt 2023, "MiniMalloc"). Impossible: there is none. GaveUp: none was found within
// `most_nodes`.
PackSearch pack_into(std::span<const TimedBlock> blocks, Bytes capacity, std::int64_t most_nodes, std::int64_t alignment = 1);

// The smallest arena that pack and pack_into find. The first capacity for pack_into is live_bound(); the next ones lie in the middle
// between the largest capacity that it failed at and the smallest arena so far. Packed: the arena is the smallest possible. GaveUp: it is
// the smallest found within `most_nodes`.
PackSearch pack_smallest(std::span<const TimedBlock> blocks, const PackOptions& options, std::int64_t most_nodes);

}  // namespace foreshard
