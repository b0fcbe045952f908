// Sums over ranks, element by element, in the order of the sources.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "core/base/dtype.h"
#include "core/plan/plan.h"

namespace foreshard {

// to[j][i] (+)= sources[0][i] + sources[1][i] + ... for elements [first, first + count) of every source and destination; arrays
// of `dtype`. Sums of 16-bit numbers are taken in fp32 and rounded once. A destination may be one of the sources.
// A mean is the sum divided by `parts`; 0: by the number of sources. Returns false when the type cannot be summed.
bool reduce(DType dtype, Combine how, bool accumulate, std::span<const std::byte* const> sources,
            std::span<std::byte* const> to, std::int64_t first, std::int64_t count, std::int64_t parts = 0);
bool can_reduce(DType dtype);

}  // namespace foreshard
