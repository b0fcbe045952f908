// What learned runs say about shapes, seen or not: factors on predicted costs and how sure they are. docs/learning.md.
#pragma once

#include <utility>
#include <vector>

#include "core/profile/learned_costs.h"

namespace foreshard {

// Covariance of ln(time / predicted time) of parts of two shapes before any run: machine^2, and where the parts are of one kind
// compute^2 or communication^2 times exp(-distance / reach), distance = sum of |differences of places| + 2 per word that differs.
double prior_covariance(const LearnedScales& scales, const PartShape& a, const PartShape& b);
bool is_communication(CostPart part);
// The distance alone, for parts of one kind.
double distance(const PartShape& a, const PartShape& b);

// How much of an iteration a part's shape takes: d ln(iteration) / d ln(its costs).
using PartShare = std::pair<PartShape, double>;

class LearnedFactors {
 public:
  explicit LearnedFactors(const LearnedCosts& learned) : learned_(learned) {}  // it must outlive this

  // By which predicted costs of this shape are multiplied: the median of what they will be.
  double factor(const PartShape& shape) const;
  // Standard deviation of ln(measured / predicted) of one more run with these shares.
  double spread(const std::vector<PartShare>& shares) const;
  int runs(const PartShape& shape) const;  // that had it
  bool knows(const std::string& framework) const;

 private:
  std::vector<double> covariances(const PartShape& shape) const;  // with the learned shapes
  const LearnedCosts& learned_;
};

}  // namespace foreshard
