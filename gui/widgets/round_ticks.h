// Round values for the ticks of an axis.
#pragma once

#include <vector>

namespace foreshard {

// Multiples of a step of 1, 2 or 5 times a power of ten in [from, to], ascending, at most `most` values.
std::vector<double> round_ticks(double from, double to, int most);

}  // namespace foreshard
