// kNever: infinity, the time or the cost of something impossible.
#pragma once

#include <limits>

namespace foreshard {

inline constexpr double kNever = std::numeric_limits<double>::infinity();

}  // namespace foreshard
