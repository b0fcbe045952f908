// The divisors of a positive integer.
#pragma once

#include <cstdint>
#include <vector>

namespace foreshard {

std::vector<std::int64_t> divisors(std::int64_t n);  // all of them, ascending, 1 and n included; n >= 1

}  // namespace foreshard
