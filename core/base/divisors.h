// The divisors of a count.
#pragma once

#include <cstdint>
#include <vector>

namespace foreshard {

std::vector<std::int64_t> divisors(std::int64_t n);  // of n >= 1, ascending

}  // namespace foreshard
