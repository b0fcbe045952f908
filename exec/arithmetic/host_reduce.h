// The arithmetic of reductions over ranks: sums, means and maxima of arrays, element by element, in the order of the sources.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "core/base/dtype.h"
#include "core/plan/plan.h"

namespace foreshard {

// to[j][i] = sources[0][i] + sources[1][i] + ... for all destinations j and all elements i in [first, first + count); with `accumulate`,
// the sum is added to to[j][i]. Combine::Max takes the maximum instead of the sum. Combine::Mean divides the sum by `parts`, or by the
// number of sources if `parts` is 0. All arrays have the format `dtype`; 16-bit numbers are summed in fp32 and rounded once. A destination
// may be one of the sources. Returns false, without writing, if can_reduce(dtype) is false.
bool reduce(DType dtype, Combine how, bool accumulate, std::span<const std::byte* const> sources,
            std::span<std::byte* const> to, std::int64_t first, std::int64_t count, std::int64_t parts = 0);
bool can_reduce(DType dtype);  // whether it is a floating-point format of at least 16 bits

}  // namespace foreshard
