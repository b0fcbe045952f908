// The words that plan and result files use for the enums of a Plan, in the order of the enumerators.
#pragma once

#include <string>
#include <vector>

#include "core/plan/plan.h"
#include "core/result/trace.h"

namespace foreshard {

template <class Enum>
const std::vector<std::string>& words();

template <class Enum>
const std::string& word(Enum value) {
  return words<Enum>()[static_cast<std::size_t>(value)];
}

}  // namespace foreshard
