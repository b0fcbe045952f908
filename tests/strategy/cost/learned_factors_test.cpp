// Factors that runs taught: the posterior of a Gaussian process over shapes, by hand for one shape and against a dense product for many.
#include "strategy/cost/learned_factors.h"

#include <gtest/gtest.h>

#include <cmath>
#include <random>

namespace foreshard::learned_factors_test {
namespace {

PartShape layer(double place, const std::string& word = "megatron") {
  return {.part = CostPart::Layer, .words = {word}, .place = {place}};
}

const LearnedScales kScales{.machine = 0.3, .compute = 0.4, .communication = 0.5, .reach = 2, .noise = 0.1};

}  // namespace

TEST(LearnedFactorsByHand, DistanceAddsPlacesAndWords) {
  const PartShape a{.words = {"x", "bf16"}, .place = {1, 5}}, b{.words = {"x", "fp8"}, .place = {4, 3}};
  EXPECT_EQ(distance(a, b), 3 + 2 + 2);
  EXPECT_EQ(distance(a, a), 0);
}

// 0.3^2 is common; 0.4^2 for computation, 0.5^2 for communication, less by e for each distance of 2.
TEST(LearnedFactorsByHand, PriorCovariance) {
  EXPECT_NEAR(prior_covariance(kScales, layer(1), layer(1)), 0.09 + 0.16, 1e-12);
  EXPECT_NEAR(prior_covariance(kScales, layer(1), layer(3)), 0.09 + 0.16 / std::exp(1.0), 1e-12);
  PartShape sums = layer(1);
  sums.part = CostPart::Gradients;
  EXPECT_NEAR(prior_covariance(kScales, sums, sums), 0.09 + 0.25, 1e-12);
  EXPECT_NEAR(prior_covariance(kScales, layer(1), sums), 0.09, 1e-12);
  for (const CostPart part : {CostPart::Layer, CostPart::Ends, CostPart::Update}) EXPECT_FALSE(is_communication(part));
  for (const CostPart part : {CostPart::Tensor, CostPart::Gradients, CostPart::Transfer}) EXPECT_TRUE(is_communication(part));
}

// One run of one shape that took twice the predicted time, with noise 0.1: k = 0.25, so the mean at that shape is
// k / (k + 0.01) ln 2, and the variance of the next run is k + 0.01 - k^2 / (k + 0.01) (Rasmussen and Williams, 2.25 and 2.26).
TEST(LearnedFactorsByHand, OneRunByHand) {
  const double k = 0.25, all = k + 0.01;
  const LearnedCosts learned{.runs = 1,
                             .scales = kScales,
                             .shapes = {{.shape = layer(1), .runs = 1, .pull = std::log(2.0) / all}},
                             .doubt = {{1 / all}}};
  const LearnedFactors factors(learned);
  EXPECT_NEAR(factors.factor(layer(1)), std::exp(k / all * std::log(2.0)), 1e-12);
  EXPECT_NEAR(factors.spread({{layer(1), 1}}), std::sqrt(k + 0.01 - k * k / all), 1e-12);
  // Far away only the machine's component is known.
  EXPECT_NEAR(factors.factor(layer(1000)), std::exp(0.09 / all * std::log(2.0)), 1e-12);
  EXPECT_EQ(factors.runs(layer(1)), 1);
  EXPECT_EQ(factors.runs(layer(2)), 0);
  EXPECT_TRUE(factors.knows("megatron"));
  EXPECT_FALSE(factors.knows("deepspeed"));
}

TEST(LearnedFactorsByHand, WithoutRunsNothingIsCorrected) {
  const LearnedCosts none{.scales = kScales};
  EXPECT_EQ(LearnedFactors(none).factor(layer(1)), 1);
  // Half of the time in each of two equal shapes: the whole prior variance, and the noise.
  EXPECT_NEAR(LearnedFactors(none).spread({{layer(1), 0.5}, {layer(1), 0.5}}), std::sqrt(0.25 + 0.01), 1e-12);
}

// The triangle of `doubt` stands for a symmetric matrix: the sum over both halves, written out, for drawn matrices.
TEST(LearnedFactorsByHand, SpreadIsTheFullQuadraticForm) {
  std::mt19937 random(1);
  std::uniform_real_distribution<> draw(0, 0.2);
  for (int trial = 0; trial < 50; ++trial) {
    LearnedCosts learned{.scales = kScales};
    for (int i = 0; i < 4; ++i) {
      learned.shapes.push_back({.shape = layer(i)});
      learned.doubt.emplace_back();
      for (int j = 0; j <= i; ++j) learned.doubt.back().push_back(draw(random));
    }
    const std::vector<PartShare> shares = {{layer(0.5), 0.4}, {layer(2.5), 0.6}};
    double variance = 0.01;
    for (const auto& [a, one] : shares)
      for (const auto& [b, other] : shares) {
        double covariance = prior_covariance(kScales, a, b);
        for (std::size_t i = 0; i < 4; ++i)
          for (std::size_t j = 0; j < 4; ++j)
            covariance -= prior_covariance(kScales, a, learned.shapes[i].shape) *
                          learned.doubt[std::max(i, j)][std::min(i, j)] * prior_covariance(kScales, learned.shapes[j].shape, b);
        variance += one * other * covariance;
      }
    EXPECT_NEAR(LearnedFactors(learned).spread(shares), std::sqrt(std::max(variance, 0.01)), 1e-9);
  }
}

}  // namespace foreshard::learned_factors_test
