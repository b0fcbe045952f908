// Packing by ejection: into an arena of a given capacity, where the greedy rules of packing.h and their local search end above it. It helps
// with blocks of few sizes that are multiples of each other; blocks of random sizes are packed as well by the rules.
//
// Blocks are placed one after the other. A block goes where it overlaps least, and what it overlaps there is taken out and waits to be
// placed again. A block that is taken out counts a tenth more from then on, so that the search leaves the places where it goes in circles
// (guided local search, Voudouris and Tsang 1999, applied to places as in the ejection chains of Glover 1996).
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "core/base/units.h"
#include "strategy/memory/block_pairs.h"
#include "strategy/memory/packing.h"

namespace foreshard {

// Blocks of a pair in `meets` do not share bytes. `first` [block]: offsets to begin from, which keep to `meets`; empty: none is placed. Empty
// result: no packing was found within `tests` tests of whether two blocks overlap; there may be one.
std::optional<Packing> pack_by_ejection(std::span<const TimedBlock> blocks, const BlockPairs& meets, Bytes capacity, std::int64_t alignment,
                                        std::int64_t tests, std::span<const Bytes> first = {});

}  // namespace foreshard
