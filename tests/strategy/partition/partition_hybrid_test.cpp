// The partition with data and tensor parallelism per stage against brute force over all cuts, replicas and degrees.
#include "strategy/partition/partition_hybrid.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <functional>
#include <random>

namespace foreshard::partition_hybrid_test {

namespace {

// Whole numbers, so that sums are exact whatever their order.
HybridJob random_job(std::mt19937& random, int layers, int devices) {
  const auto number = [&](int least, int most) {
    return static_cast<double>(std::uniform_int_distribution<int>(least, most)(random));
  };
  HybridJob job{.devices = devices, .microbatches = number(1, 8), .link = number(1, 6)};
  for (const int degree : {1, 2, 3, 4}) {
    if (degree > 1 && number(0, 2) == 0) continue;
    TensorDegree each{.degree = degree, .inside = std::max(1, 4 / degree), .near = number(4, 9), .far = number(1, 4)};
    for (int i = 0; i < layers; ++i)
      each.layers.push_back({.forward = number(1, 24 / degree),
                             .backward = number(1, 24 / degree),
                             .weights = number(0, 24),
                             .output = number(0, 12),
                             .states = number(1, 8),
                             .kept = number(0, 4)});
    job.degrees.push_back(std::move(each));
  }
  job.in_flight = static_cast<int>(number(1, 3));
  if (number(0, 2) == 0) job.capacity = number(10, 40);
  if (number(0, 2) == 0) job.replicas = number(0, 1) ? std::vector<int>{1, 2, 4} : std::vector<int>{1, 3};
  if (number(0, 2) == 0) job.ends = job.degrees[random() % job.degrees.size()].degree;
  return job;
}

// The formula of the header once more, from the layers themselves.
double stage_cost(const HybridJob& job, const TensorDegree& degree, int first, int last, int replicas) {
  const bool end = first == 0 || last == static_cast<int>(degree.layers.size());
  if (end && job.ends > 0 && degree.degree != job.ends) return 1e300;
  if (!job.replicas.empty() && std::ranges::find(job.replicas, replicas) == job.replicas.end()) return 1e300;
  double work = 0, weights = 0, bytes = 0;
  for (int i = first; i < last; ++i) {
    const ChainLayer& layer = degree.layers[static_cast<std::size_t>(i)];
    work += layer.forward + layer.backward, weights += layer.weights;
    bytes += layer.states + job.in_flight * layer.kept;
  }
  if (bytes > job.capacity) return 1e300;
  const double bandwidth = replicas > degree.inside ? degree.far : degree.near;
  double slowest = work / replicas + 2.0 * (replicas - 1) / replicas * weights / bandwidth / job.microbatches;
  if (first > 0)
    slowest = std::max(slowest, 2 * degree.layers[static_cast<std::size_t>(first) - 1].output / job.link / replicas);
  if (last < static_cast<int>(degree.layers.size()))
    slowest = std::max(slowest, 2 * degree.layers[static_cast<std::size_t>(last) - 1].output / job.link / replicas);
  return slowest;
}

double brute_force(const HybridJob& job, int first, int devices, double so_far) {
  const int layers = static_cast<int>(job.degrees.front().layers.size());
  if (first == layers) return so_far;
  double best = 1e300;
  for (int last = first + 1; last <= layers; ++last)
    for (const TensorDegree& degree : job.degrees)
      for (int replicas = 1; replicas * degree.degree <= devices; ++replicas) {
        const double cost = std::max(so_far, stage_cost(job, degree, first, last, replicas));
        if (cost < best) best = std::min(best, brute_force(job, last, devices - replicas * degree.degree, cost));
      }
  return best;
}

double slowest(const HybridJob& job, const std::vector<HybridStage>& stages) {
  double cost = 0;
  for (const HybridStage& stage : stages) cost = std::max(cost, hybrid_cost(job, stage));
  return cost;
}

}  // namespace

TEST(PartitionHybrid, EqualsBruteForce) {
  std::mt19937 random(41);
  int impossible = 0, mixed = 0;
  for (int trial = 0; trial < 1500; ++trial) {
    const int layers = 1 + trial % 6, devices = 1 + trial / 6 % 8;
    const HybridJob job = random_job(random, layers, devices);
    const double best = brute_force(job, 0, devices, 0);
    const HybridPartition found = partition_hybrid(job);
    if (best == 1e300) {
      ASSERT_TRUE(found.stages.empty()) << trial;
      ++impossible;
      continue;
    }
    ASSERT_NEAR(found.cost, best, 1e-12 * best) << trial;
    ASSERT_NEAR(slowest(job, found.stages), best, 1e-12 * best) << trial;
    int next = 0, used = 0;
    for (const HybridStage& stage : found.stages) {
      ASSERT_EQ(stage.first, next);
      ASSERT_LT(stage.first, stage.last);
      next = stage.last, used += stage.devices();
      ASSERT_LT(stage_cost(job,
                           *std::find_if(job.degrees.begin(), job.degrees.end(),
                                         [&](const TensorDegree& each) { return each.degree == stage.tensor; }),
                           stage.first, stage.last, stage.replicas),
                1e300)
          << "memory";
      mixed += stage.tensor != found.stages.front().tensor;
    }
    ASSERT_EQ(next, layers);
    ASSERT_LE(used, devices);
  }
  EXPECT_GT(impossible, 50);
  EXPECT_LT(impossible, 500);
  EXPECT_GT(mixed, 100);
}

TEST(PartitionHybrid, UniformEqualsBruteForceAndIsNeverBetter) {
  std::mt19937 random(42);
  for (int trial = 0; trial < 300; ++trial) {
    const int layers = 2 + trial % 5, replicas = 1 + trial % 2, stages = 1 + trial % 3;
    const HybridJob job = random_job(random, layers, 8);
    const TensorDegree& degree = job.degrees.back();
    double best = 1e300;
    const std::function<void(int, int, double)> cut = [&](int first, int left, double cost) {
      if (left == 0 && first == layers) best = std::min(best, cost);
      for (int last = first + 1; left > 0 && last <= layers; ++last)
        cut(last, left - 1, std::max(cost, stage_cost(job, degree, first, last, replicas)));
    };
    if (stages * replicas * degree.degree <= 8) cut(0, stages, 0);
    const HybridPartition found = partition_uniform(job, degree.degree, replicas, stages);
    if (best == 1e300) {
      ASSERT_TRUE(found.stages.empty());
      continue;
    }
    ASSERT_NEAR(found.cost, best, 1e-12 * best) << trial;
    ASSERT_LE(partition_hybrid(job).cost, found.cost * (1 + 1e-12));
  }
}

// A convolution in front (16 s of work, no weights, outputs too large for tensor parallelism: as slow on two ranks as on one) and a
// classifier (8 s, 60 bytes of weights at 1 byte/s, half as long on two ranks), six devices, one micro-batch. Four replicas for the
// first, two tensor ranks for the second: 4 s each. Replicas for both: 2 devices give the classifier 4 + 60 s.
TEST(PartitionHybrid, DataForTheConvolutionTensorForTheClassifier) {
  const ChainLayer convolution{.forward = 6, .backward = 10}, classifier{.forward = 3, .backward = 5, .weights = 60};
  const ChainLayer half{.forward = 1.5, .backward = 2.5, .weights = 30};
  const HybridJob job{.degrees = {{1, {convolution, classifier}, 1, 1, 1}, {2, {convolution, half}, 1, 1, 1}}, .devices = 6};
  const HybridPartition found = partition_hybrid(job);
  EXPECT_EQ(found.cost, 4);
  EXPECT_EQ(found.stages, (std::vector<HybridStage>{{0, 1, 4, 1}, {1, 2, 1, 2}}));
}

// A link is as fast as its slower end: 12 bytes forward and 12 back at 2 bytes/s are 12 s for one replica, 4 for three.
TEST(PartitionHybrid, LinksAreMachines) {
  const ChainLayer layer{.forward = 1, .backward = 1, .output = 12};
  HybridJob job{.degrees = {{1, {layer, layer}, 1, 1, 1}}, .devices = 6, .link = 2};
  EXPECT_EQ(hybrid_cost(job, {0, 1, 3, 1}), 4);
  EXPECT_EQ(hybrid_cost(job, {1, 2, 1, 1}), 12);
  EXPECT_EQ(hybrid_cost(job, {0, 2, 1, 1}), 4) << "no link";
}

}  // namespace foreshard::partition_hybrid_test
