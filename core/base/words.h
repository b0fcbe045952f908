// The words that files use for enums, in the order of the enumerators. Each room defines those of its own enums.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

namespace foreshard {

template <class Enum>
const std::vector<std::string>& words();

template <class Enum>
const std::string& word(Enum value) {
  return words<Enum>()[static_cast<std::size_t>(value)];
}

}  // namespace foreshard
