// Order bound: how many bytes the order of a plan lets live together, whatever the timing. It stands between the live peak of
// one timing and the arena: bound / live is the price of concurrency, arena / bound is fragmentation.
#pragma once

#include <vector>

#include "core/plan/plan.h"

namespace foreshard {

// The largest sum of blocks of `space` that can be alive at one moment of one run of `role`, resident and carried-over blocks
// included. Order is that of streams, `after` and events of the role (core/plan/program_order.h).
//
// A moment of an execution is a cut: a number of started and of ended instructions per stream, such that whatever a started
// instruction waits for has ended. Blocks that can pairwise be alive together have a cut with all of them alive, so the bound
// is the largest sum over the cuts. Walked along the stream with the most acquires and releases ("main"), every other stream
// can stand anywhere between what main has made it do and what main lets it do, and the sum splits by streams:
//
//     bound = max over positions p of main: V_main(p) + sum over others s of max over positions q in [forced(p), allowed(p)] of V_s(q)
//
// where V is what a stream has acquired less what it has released. Exact for one and for two streams that touch memory; with
// more it is an upper bound, reached unless two side streams hold each other back without main.
// O(instructions x streams).
Bytes order_bound(const Plan& plan, RoleId role, Space space = Space::Device);
// [role], of the device's memory.
std::vector<Bytes> order_bounds(const Plan& plan);

}  // namespace foreshard
