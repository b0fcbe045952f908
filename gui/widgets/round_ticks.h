// Ticks of a scale.
#pragma once

#include <vector>

namespace foreshard {

// Steps of 1, 2 or 5 times a power of ten, at most `most` of them in [from, to].
std::vector<double> round_ticks(double from, double to, int most);

}  // namespace foreshard
