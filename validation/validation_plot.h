// The errors of a Validation as a picture: a strip per cell, a mark per row. Made to be read in print.
#pragma once

#include <string>

#include "validation/validation.h"

namespace foreshard {

// Across: predicted over measured on a logarithmic scale from 1/2 to 2; rows farther off stand at the edge. A throughput counts as
// the time it takes, measured over predicted. Down: the cells of time, then those of memory. The stroke of a strip is the median of
// its marks; the shaded band is 5 % either way.
std::string validation_svg(const Validation& validation);

}  // namespace foreshard
