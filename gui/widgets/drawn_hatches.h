// Drawn hatches: pictures for readers that know no patterns, such as Qt's own and many that print. Every rectangle that is filled
// with a pattern of lines becomes a plain one with the lines drawn into it.
#pragma once

#include <string>

namespace foreshard {

// `svg` as report/pictures/svg.h writes it; what has no pattern stays as it is.
std::string with_drawn_hatches(const std::string& svg);

}  // namespace foreshard
