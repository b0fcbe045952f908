// How much of a check is made: less at every change, all of it by scripts/long_checks.sh, which sets FORESHARD_LONG.
#pragma once

#include <cstdlib>

namespace foreshard {

inline bool all_of_it() { return std::getenv("FORESHARD_LONG") != nullptr; }
template <class Number>
Number how_many(Number at_every_change, Number all) {
  return all_of_it() ? all : at_every_change;
}

}  // namespace foreshard
