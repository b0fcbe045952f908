// Packing by ejection: into an arena of a given capacity, for when the greedy rules of packing.h and their local search end above it. It
// helps with blocks of few sizes that are multiples of each other; blocks of random sizes are packed as well by the rules.
//
// Blocks are placed one after the other. A block goes where it overlaps least, and what it overlaps there is taken out and waits to be
// placed again. Each time a block is taken out, its weight grows by a tenth, so that the search does not go in circles (guided local
// search, Voudouris and Tsang 1999, applied to places as in the ejection chains of Glover 1996).
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "core/base/units.h"
#include "strategy/memory/block_pairs.h"
#include "strategy/memory/packing.h"

namespace foreshard {

// The work that it may take: placements per block, and tests of whether two blocks overlap.
struct EjectionLimits {
  std::int64_t steps_per_block = 16;
  std::int64_t tests = 200'000'000;
};

// Blocks of a pair in `meets` do not share bytes. `first` [block]: offsets to begin from, which keep to `meets`; empty: none is placed. Empty
// result: no packing was found within the limits; there may be one.
std::optional<Packing> pack_by_ejection(std::span<const TimedBlock> blocks, const BlockPairs& meets, Bytes capacity,
                                        std::int64_t alignment, std::span<const Bytes> first = {},
                                        const EjectionLimits& limits = {});

}  // namespace foreshard
