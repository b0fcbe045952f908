// Packing: offsets of blocks whose lifetimes are known before anything runs ("dynamic storage allocation"). Two blocks that are
// alive at one time share no byte. NP-hard in general (Garey and Johnson 1979, problem SR2), so there are three ways:
//
//   pack_equal   blocks of one size: the left-edge rule, which needs as many places as blocks are alive at once; no packing needs fewer
//   pack         any sizes: one rule after the other until one meets the bound, then a local search
//   pack_into    any sizes, a given capacity: a search that finds a packing, proves that there is none, or gives up after a given number of search nodes
//
// live_bound() is a lower bound of every arena. The arena divided by it, less one, is called fragmentation.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "core/base/units.h"

namespace foreshard {

// Alive at every time t with begin <= t < end. A time is a count of anything that grows: instructions, nanoseconds.
struct Lifetime {
  std::int64_t begin = 0, end = 0;
};

// A block may be alive several times; it has one offset for all of them. Bytes above zero.
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

// Blocks of one size with one lifetime each (asserted).
Packing pack_equal(std::span<const TimedBlock> blocks, std::int64_t alignment = 1);

// The order in which blocks are placed, and where.
enum class PackRule : std::uint8_t {
  FirstFitSize,  // largest first, equal ones as given; at the lowest free offset (Pisarchyk and Lee 2020, arXiv 2001.03288, 4.2)
  BestFitSize,   // largest first, of equal ones the longest; from here on in the smallest gap that is large enough, else on top
  BestFitArea,   // bytes times duration, largest first
  BestFitDuration,  // longest first
  BestFitStart,     // as they begin: what an allocator does that does not know the future
};
inline constexpr int kPackRules = 5;

Packing pack_by(std::span<const TimedBlock> blocks, PackRule rule, std::int64_t alignment = 1);

struct PackOptions {
  std::int64_t alignment = 1;
  int moves = 100;  // of the local search: blocks that reach the top of the arena are placed first, the others after them
};

// The smallest arena of all rules and moves. Stops at the first one that meets the bound.
Packing pack(std::span<const TimedBlock> blocks, const PackOptions& options = {});

// The same where not all blocks whose lifetimes overlap are alive together: `meets` [block] are those that it may not share bytes with.
Packing pack(std::span<const TimedBlock> blocks, const std::vector<std::vector<int>>& meets, const PackOptions& options);

enum class PackAnswer : std::uint8_t { Packed, Impossible, GaveUp };

struct PackSearch {
  PackAnswer answer = PackAnswer::GaveUp;
  Packing packing = {};    // if packed
  std::int64_t nodes = 0;  // blocks that were placed, those taken back included
};

// Searches for a packing of at most `capacity`; gives up after `most_nodes`.
PackSearch pack_into(std::span<const TimedBlock> blocks, Bytes capacity, std::int64_t most_nodes, std::int64_t alignment = 1);

// The smallest arena that the rules and the search find: the search tries the bound first, then halves what is between the largest
// capacity that it failed at and the smallest arena so far. Packed: no arena is smaller. GaveUp: out of nodes, with the smallest so far.
PackSearch pack_smallest(std::span<const TimedBlock> blocks, const PackOptions& options, std::int64_t most_nodes);

}  // namespace foreshard
