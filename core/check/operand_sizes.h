// How many elements each operand of a compute has, from the shapes and settings of its operator (docs/operators.md). Internal to core/check.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "core/plan/plan.h"

namespace foreshard {

inline constexpr std::int64_t kAnySize = -1;  // an operand whose size the operator leaves open: a table of positions, a slice

struct OperandSizes {
  std::vector<std::int64_t> reads = {}, writes = {};  // elements, or kAnySize
  std::string wrong = {};                             // not empty: shapes and settings contradict each other, and how
};

// `reads` and `writes`: elements of the operands that the instruction has; their number tells which optional ones are there. `slices`: ranks of
// Compute::slice, each of which works on its part of a block of all parts. Nothing for a compute that states no shapes.
std::optional<OperandSizes> operand_sizes(const Compute& compute, const std::vector<std::int64_t>& reads,
                                          const std::vector<std::int64_t>& writes, std::int64_t slices = 1);

// The samples that the shapes state; nothing if the operator does not state them.
std::optional<std::int64_t> samples_of(const Compute& compute);

}  // namespace foreshard
