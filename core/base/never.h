// kNever: the time, or the cost, of what cannot be.
#pragma once

#include <limits>

namespace foreshard {

inline constexpr double kNever = std::numeric_limits<double>::infinity();

}  // namespace foreshard
