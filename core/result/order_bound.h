// Order bound: the largest set of blocks that the order of a plan allows to be alive together, whatever the timing. It lies between the
// live peak of one timing and the arena: bound / live peak is the cost of concurrency, arena / bound is fragmentation.
#pragma once

#include <vector>

#include "core/plan/plan.h"
#include "core/plan/program.h"

namespace foreshard {

// The largest sum of bytes of blocks in `space` that can be alive at one time of one run of `role`, resident and carried-over blocks
// included. The order is that of streams, `after` and events of the role (core/plan/program_order.h).
//
// A moment of an execution is a cut: a number of started and of ended instructions per stream, such that everything a started instruction
// waits for has ended. If blocks can be alive together pairwise, there is a cut with all of them alive; so the bound is the largest sum
// over the cuts. "main" is the stream with the most acquires and releases. For a position p of main, another stream s can be at any
// position from forced(p), which main has waited for, to allowed(p), the last that need not wait for more of main. So the sum separates by
// stream:
//
//     bound = max over positions p of main: V_main(p) + sum over others s of max over positions q in [forced(p), allowed(p)] of V_s(q)
//
// where V is the bytes that a stream has acquired less those that it has released. Exact if at most two streams acquire or release; with
// more it is an upper bound, which is reached unless two other streams wait for each other without main.
// O(instructions x streams).
Bytes order_bound(const Plan& plan, RoleId role, Space space = Space::Device);
// `meetings`: find_meeting_points(plan), which callers that ask for several roles find once.
Bytes order_bound(const Plan& plan, const MeetingPoints& meetings, RoleId role, Space space = Space::Device);
// [role]: the bound in Space::Device.
std::vector<Bytes> order_bounds(const Plan& plan);

// The largest sum of bytes of such blocks when the instructions of the role run one at a time in issue order. That is one of the executions
// that the order allows, so the order bound is at least as large. O(actions).
Bytes issue_order_peak(const Plan& plan, RoleId role, Space space = Space::Device);

}  // namespace foreshard
