// How much of a check is made: less at every change, all of it by scripts/long_checks.sh, which sets FORESHARD_LONG.
#pragma once

#include <cstdlib>
#include <vector>

namespace foreshard {

inline bool all_of_it() { return std::getenv("FORESHARD_LONG") != nullptr; }
template <class Number>
Number how_many(Number at_every_change, Number all) {
  return all_of_it() ? all : at_every_change;
}
// So many of them at every change, evenly spread, the first one among them.
template <class Case>
std::vector<Case> some_of(std::vector<Case> all, std::size_t at_every_change) {
  if (all_of_it() || all.size() <= at_every_change) return all;
  std::vector<Case> some;
  for (std::size_t i = 0; i < at_every_change; ++i) some.push_back(std::move(all[i * all.size() / at_every_change]));
  return some;
}

}  // namespace foreshard
