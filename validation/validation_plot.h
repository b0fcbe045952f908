// Draws the errors of a Validation as an SVG picture for print: a strip per cell, a mark per row.
#pragma once

#include <string>

#include "validation/validation.h"

namespace foreshard {

// The x axis is predicted over measured time or memory, logarithmic from 1/2 to 2; marks of larger errors are drawn at the edge. For
// a throughput it is measured over predicted, the ratio of the times. From top to bottom: cells of time, then of memory. The stroke in
// a strip is the median of its marks; the shaded band is an error of 5 % in both directions.
std::string validation_svg(const Validation& validation);

}  // namespace foreshard
