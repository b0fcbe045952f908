// Factors on predicted costs, learned from a user's own runs (LearnedCosts), for shapes that these runs had and for others, with their
// uncertainty. docs/learning.md.
#pragma once

#include <utility>
#include <vector>

#include "core/profile/learned_costs.h"

namespace foreshard {

// Prior covariance, before any run, of ln(time / predicted time) of the parts of two shapes: machine^2; if the parts are of one kind, plus
// compute^2 or communication^2 times exp(-distance / reach).
double prior_covariance(const LearnedScales& scales, const PartShape& a, const PartShape& b);
bool is_communication(CostPart part);
// Distance of two shapes of one kind of part: the sum of the absolute differences of `place`, plus 2 for each of `words` that differs.
double distance(const PartShape& a, const PartShape& b);

// A part's shape, and its share of an iteration: d ln(time of the iteration) / d ln(costs of the part).
using PartShare = std::pair<PartShape, double>;

class LearnedFactors {
 public:
  explicit LearnedFactors(const LearnedCosts& learned) : learned_(learned) {}  // it must outlive this

  // The factor by which predicted costs of this shape are to be multiplied: the median of measured over predicted.
  double factor(const PartShape& shape) const;
  // Standard deviation of ln(measured / predicted) of the next run, whose parts have these shares.
  double spread(const std::vector<PartShare>& shares) const;
  int runs(const PartShape& shape) const;          // number of learned runs in which exactly this shape took time
  bool knows(const std::string& framework) const;  // some learned shape is of this framework

 private:
  std::vector<double> covariances(const PartShape& shape) const;  // prior, [learned shape]
  const LearnedCosts& learned_;
};

}  // namespace foreshard
