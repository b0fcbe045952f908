// Tests whether the program of one pipeline rank fits its GPU, before there is a plan: builds that rank's program only and plans its
// memory. Ranks do not share memory, so choices for one rank can be tried without the others. Internal to strategy/.
#pragma once

#include <string>
#include <vector>

#include "strategy/program/lowering.h"

namespace foreshard {

class RoleTrial {
 public:
  // `base` has no roles yet and outlives the trial.
  explicit RoleTrial(const Lowering& base);

  Lowering lowering;  // set the choices to be tried here; each call of arena() replaces its plan
  // Arena + framework memory + reserve <= memory of the GPU, the condition that does_not_fit tests on a whole plan.
  bool fits(int rank) { return arena(rank) <= room(rank); }
  Bytes arena(int rank);       // that the rank's program needs
  Bytes room(int rank) const;  // that the rank's GPU has for an arena

 private:
  const Lowering& base_;
  std::vector<std::string> kinds_ = {};  // [rank]: the kind of its GPU
  Bytes beside_ = {};                    // framework memory and reserve
};

}  // namespace foreshard
