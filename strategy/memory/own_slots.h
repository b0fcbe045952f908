// Repacks the memory of a role if its arena is far above the order bound because each block has one offset in all its lifetimes.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "core/plan/plan.h"

namespace foreshard {

// An arena that is above its bound by no more than this is not packed anew.
inline constexpr Bytes kWorthPacking{1 << 20};

// Steps for a role whose device arena is above the order bound by more than a twentieth and more than kWorthPacking: a slot for every use
// (slot_uses.h); if that is not enough, a buffer for every lifetime of scratch inside a segment (split_scratch); at last packing by ejection
// (ejection.h). A step is kept if arenas get smaller.
// `bounds`: [role], order_bound or what is below it; roles without one are left alone. Runs that would have too many blocks are left alone, too.
void pack_own_slots(Plan& plan, const std::vector<std::optional<Bytes>>& bounds, std::int64_t alignment);

}  // namespace foreshard
