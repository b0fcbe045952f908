// The words that result files use for the enums of a trace, in the order of the enumerators (core/base/words.h).
#include "core/base/words.h"
#include "core/result/result.h"

namespace foreshard {

using Words = std::vector<std::string>;

template <>
const Words& words<Origin>() {
  static const Words list = {"simulated", "measured"};
  return list;
}
template <>
const Words& words<Granularity>() {
  static const Words list = {"op", "layer", "stage"};
  return list;
}
template <>
const Words& words<Folding>() {
  static const Words list = {"none", "tp", "full"};
  return list;
}

}  // namespace foreshard
