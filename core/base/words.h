// The words that files use for the values of enums. Each library that owns an enum specialises words<Enum>().
#pragma once

#include <cstddef>
#include <string>
#include <vector>

namespace foreshard {

// In the order of the enumerators.
template <class Enum>
const std::vector<std::string>& words();

template <class Enum>
const std::string& word(Enum value) {
  return words<Enum>()[static_cast<std::size_t>(value)];
}

}  // namespace foreshard
