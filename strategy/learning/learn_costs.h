// learn_costs: measured runs -> what they teach about the parts that they are made of. docs/learning.md.
#pragma once

#include <string>
#include <vector>

#include "core/profile/learned_costs.h"
#include "strategy/cost/learned_factors.h"

namespace foreshard {

struct LearnedRun {
  std::vector<PartShare> shares = {};
  double ratio = 1;  // measured time / predicted time
};

// Nothing to learn from: no runs, or none with a part that takes time.
// A run's ratio is sum over parts of share * (factor - 1), plus 1, times e^noise. Factors have the prior covariance of
// learned_factors.h; its five scales are those of the largest evidence (Rasmussen and Williams 2006, equation 5.8, at the
// linearized runs) under priors so wide, a factor of 4.5 either way at one deviation, that they matter for a handful of runs only.
LearnedCosts learn_costs(const std::vector<LearnedRun>& runs);

}  // namespace foreshard
