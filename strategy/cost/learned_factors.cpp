#include "strategy/cost/learned_factors.h"

#include <algorithm>
#include <cmath>

namespace foreshard {

static constexpr double kOtherWord = 2;

bool is_communication(CostPart part) {
  switch (part) {
    case CostPart::Layer:
    case CostPart::Ends:
    case CostPart::Update: return false;
    case CostPart::Tensor:
    case CostPart::Gradients:
    case CostPart::Transfer: return true;
  }
  return false;
}

double distance(const PartShape& a, const PartShape& b) {
  double sum = 0;
  for (std::size_t i = 0; i < std::min(a.words.size(), b.words.size()); ++i) sum += a.words[i] == b.words[i] ? 0 : kOtherWord;
  for (std::size_t i = 0; i < std::min(a.place.size(), b.place.size()); ++i) sum += std::abs(a.place[i] - b.place[i]);
  return sum;
}

double prior_covariance(const LearnedScales& scales, const PartShape& a, const PartShape& b) {
  const double common = scales.machine * scales.machine;
  if (a.part != b.part) return common;
  const double own = is_communication(a.part) ? scales.communication : scales.compute;
  return common + own * own * std::exp(-distance(a, b) / scales.reach);
}

std::vector<double> LearnedFactors::covariances(const PartShape& shape) const {
  std::vector<double> result;
  result.reserve(learned_.shapes.size());
  for (const LearnedShape& known : learned_.shapes) result.push_back(prior_covariance(learned_.scales, shape, known.shape));
  return result;
}

double LearnedFactors::factor(const PartShape& shape) const {
  const std::vector<double> with = covariances(shape);
  double mean = 0;
  for (std::size_t i = 0; i < with.size(); ++i) mean += with[i] * learned_.shapes[i].pull;
  return std::exp(mean);
}

double LearnedFactors::spread(const std::vector<PartShare>& shares) const {
  double variance = learned_.scales.noise * learned_.scales.noise;
  std::vector<double> with(learned_.shapes.size());
  for (const auto& [shape, share] : shares) {
    for (const auto& [other, its] : shares) variance += share * its * prior_covariance(learned_.scales, shape, other);
    const std::vector<double> one = covariances(shape);
    for (std::size_t i = 0; i < with.size(); ++i) with[i] += share * one[i];
  }
  for (std::size_t i = 0; i < learned_.doubt.size(); ++i)
    for (std::size_t j = 0; j <= i; ++j) variance -= (i == j ? 1 : 2) * with[i] * learned_.doubt[i][j] * with[j];
  return std::sqrt(std::max(variance, learned_.scales.noise * learned_.scales.noise));
}

int LearnedFactors::runs(const PartShape& shape) const {
  for (const LearnedShape& known : learned_.shapes)
    if (known.shape == shape) return known.runs;
  return 0;
}

bool LearnedFactors::knows(const std::string& framework) const {
  return std::any_of(learned_.shapes.begin(), learned_.shapes.end(), [&](const LearnedShape& known) {
    return !known.shape.words.empty() && known.shape.words.front() == framework;
  });
}

}  // namespace foreshard
