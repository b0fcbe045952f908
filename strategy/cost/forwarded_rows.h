// Rows that are forwarded as they arrive. A dispatcher that sends a token once to each node (core/op/dispatcher.h) has two phases: between
// nodes, to the rank with the same place, and inside the node, to the ranks of its experts; results come back in the opposite order. Its
// kernels forward each chunk of tokens when it has arrived (deepseek-ai/DeepEP README, "normal kernels": NVLink to RDMA forwarding;
// issue 285: with 16 ranks NVLink limits), so that both phases run at the same time.
#pragma once

#include <vector>

#include "core/plan/plan.h"

namespace foreshard {

// [instruction of the segment]: the earlier all-to-all, between nodes or inside, whose rows this one, inside or between nodes, forwards; -1:
// none. The rows may have been sorted, added up, encoded or decoded in between.
std::vector<int> forwarded_rows(const Plan& plan, const Role& role, const Segment& segment);

// Factor of the bytes of the second phase that are still to be sent when the first has ended, for phases of `first` and `second` seconds on
// the wire. Both together take the longer one, and of the shorter one the chunk that fills or drains the kernel:
//   max(first, second) + min(first, second) / chunks
double still_to_send(double first, double second);
// 20 to 28 tokens of the 410 that each of DeepEP's ten channels sends of 4096 (deep_ep/buffer.py, get_dispatch_config, get_combine_config).
inline constexpr double kForwardedChunks = 16;

}  // namespace foreshard
