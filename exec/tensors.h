// Logical tensors and the parts of them that ranks hold: initial weights, and whole tensors put together again.
#pragma once

#include <cstdint>
#include <vector>

#include "core/ranks.h"
#include "exec/rank_memory.h"

namespace foreshard {

// Fills values and master copies; gradients and optimizer states are zero as allocated.
void fill_initial_state(const Plan& plan, const Ranks& ranks, RankId rank, const RankMemory& memory, std::uint64_t seed);

// A tensor of the model, put together from all ranks; row-major.
struct WholeTensor {
  std::vector<double> elements = {};
  std::vector<char> held = {};    // [element]: some rank holds it
  double largest_difference = 0;  // between two ranks that hold the same element
};

// `part` of every tensor, in the order of Plan::tensors. Where a buffer holds more than is up to date at the end of a run
// (ZeRO 1-2: gradients beside the own slice, values before their all-gather), only the slice that is counts.
std::vector<WholeTensor> gather_tensors(const Plan& plan, const Ranks& ranks, const std::vector<const RankMemory*>& memories,
                                        TensorPart part);

}  // namespace foreshard
