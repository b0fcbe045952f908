// RankSpeed: how fast a rank computes. Ranks of different pace are in different classes.
#pragma once

#include <vector>

#include "core/plan/plan.h"
#include "core/plan/ranks.h"
#include "replay/replay.h"

namespace foreshard::player {

struct RankSpeed {
  double slowdown = 1;  // factor on the time of its computes
  bool fewer_rows =
      false;  // its experts get ops::GroupedMatMul::others of the expected rows: it is not the first of its expert group
  auto operator<=>(const RankSpeed&) const = default;
};

// [rank]. With ReplayOptions::one_class_per_role no rank has fewer rows, because the most loaded one decides. Throws Error for a straggler
// that is no rank or has a bad factor.
std::vector<RankSpeed> find_paces(const Plan& plan, const Ranks& ranks, const ReplayOptions& options);

// The share of its cost that the instruction takes on a rank with fewer rows.
double share_of_rows(const Instruction& instruction);

}  // namespace foreshard::player
