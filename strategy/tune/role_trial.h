// Tests whether the program of one pipeline rank fits its GPU, before there is a plan: builds that rank's program only and plans its
// memory. Ranks do not share memory, so choices for one rank can be tried without the others. Internal to strategy/.
#pragma once

#include <string>
#include <vector>

#include "strategy/program/lowering.h"

namespace foreshard {

class RoleTrial {
 public:
  // `base` has no roles yet and outlives the trial. `by_order`: a program that does not fit is packed again by the order of the run, as
  // lower() does (LowerOptions::pack_by_order).
  RoleTrial(const Lowering& base, bool by_order);

  Lowering lowering;  // set the choices to be tried here; each call of arena() replaces its plan
  // Arena + framework memory + reserve <= memory of the GPU, the condition that does_not_fit tests on a whole plan.
  bool fits(int rank) { return arena(rank) <= room(rank); }
  Bytes arena(int rank) { return arena(rank, room(rank)); }  // that the rank's program needs
  Bytes arena(int rank, Bytes enough);                       // the same; packed by order only if otherwise above `enough`
  Bytes room(int rank) const;                                // that the rank's GPU has for an arena

 private:
  const Lowering& base_;
  bool by_order_ = false;
  std::vector<std::string> kinds_ = {};  // [rank]: the kind of its GPU
  Bytes beside_ = {};                    // framework memory and reserve
};

// "--offload-budget 9876MiB": the smallest whole number of MiB that an arena fits in.
std::string budget_that_fits(Bytes arena);

}  // namespace foreshard
