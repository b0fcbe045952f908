// Whether the program of one pipeline rank fits its GPU, before there is a plan: the rank's program is built and its memory planned,
// alone. Ranks do not share memory, so choices about one are tried without the others. Internal to strategy/.
#pragma once

#include <string>
#include <vector>

#include "strategy/program/lowering.h"

namespace foreshard {

class RoleTrial {
 public:
  // `base` has no roles yet and outlives the trial.
  explicit RoleTrial(const Lowering& base);

  Lowering lowering;  // the choices on trial: its plan is made anew each time
  // Arena + framework + reserve <= capacity, as does_not_fit says it of a whole plan.
  bool fits(int rank) { return arena(rank) <= room(rank); }
  Bytes arena(int rank);
  Bytes room(int rank) const;

 private:
  const Lowering& base_;
  std::vector<std::string> kinds_ = {};  // [rank]: of GPU
  Bytes beside_ = {};                    // framework and reserve
};

}  // namespace foreshard
