// Packs the memory of a role anew where the packing is far above the order bound because blocks have one offset in all their lifetimes.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "core/plan/plan.h"

namespace foreshard {

// Roles whose arena on the device is above the order bound by more than a twentieth get a slot of its own for every use (slot_uses.h), and if
// that is not enough, a buffer of its own for every lifetime of scratch inside a segment (split_scratch), and at last a packing by ejection
// (ejection.h). Kept where arenas get smaller.
// `bounds`: [role], order_bound or what is below it; roles without one are left alone. Runs that would have too many blocks are left alone, too.
void pack_own_slots(Plan& plan, const std::vector<std::optional<Bytes>>& bounds, std::int64_t alignment);

}  // namespace foreshard
