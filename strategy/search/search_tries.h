// Options that a search varies only if asked (SearchOptions::tries), because they change what is trained or take a plan each to judge.
// Internal to strategy/.
#pragma once

#include <vector>

#include "strategy/search/search_space.h"

namespace foreshard {

// `plain` with the values of tried_options() for the options that are asked for, all combinations but none; gradients in codes also without
// ZeRO, where those of a node are added before (compress_group). At most kMostTried.
inline constexpr int kMostTried = 96;
std::vector<Strategy> tried_variants(const SearchOptions& options, const Strategy& plain);

// The point of such a variant of the strategy at `point`.
Point point_of(const Strategy& variant, Point point);

}  // namespace foreshard
