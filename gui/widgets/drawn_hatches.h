// Drawn hatches: for SVG renderers without patterns, such as Qt's and many print programs. A rectangle that is filled with a pattern
// of lines becomes a plain rectangle with the lines drawn into it.
#pragma once

#include <string>

namespace foreshard {

// `svg`: text as report/pictures/svg.h writes it. Everything without a pattern is unchanged.
std::string with_drawn_hatches(const std::string& svg);

}  // namespace foreshard
