// learn_costs: learns from measured runs by which factors the costs of the parts of an iteration (computes, collectives, ...) differ from
// predictions. See docs/learning.md.
#pragma once

#include <string>
#include <vector>

#include "core/profile/learned_costs.h"
#include "strategy/cost/learned_factors.h"

namespace foreshard {

struct LearnedRun {
  std::vector<PartShare> shares = {};  // of the parts of its iteration, by part_shares
  double ratio = 1;                    // measured time / predicted time
};

// A Gaussian process over ln(factor) of the parts' shapes. The model of a run is
//   ratio = (1 + sum over parts of share * (factor - 1)) * e^noise
// with the prior covariance of the ln(factor) in learned_factors.h. Its five scales are those that maximize the evidence (marginal
// likelihood, Rasmussen and Williams 2006, equation 5.8) of the runs, linearized about the current factors, times log-normal priors of the
// scales; these are so wide (one standard deviation is a factor of 4.5) that they matter only for a handful of runs.
// The result has no shapes if there are no runs, or none with a part that takes time.
LearnedCosts learn_costs(const std::vector<LearnedRun>& runs);

}  // namespace foreshard
