// Stages for the shortest step against brute force over all cuts, replicas and degrees.
#include "strategy/partition/partition_step.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <functional>
#include <random>

namespace foreshard::partition_step_test {

namespace {

HybridJob random_job(std::mt19937& random, int layers, int devices, bool one_degree) {
  const auto number = [&](int least, int most) {
    return static_cast<double>(std::uniform_int_distribution<int>(least, most)(random));
  };
  HybridJob job{.devices = devices, .microbatches = number(1, 12), .link = number(1, 6)};
  for (const int degree : {1, 2, 4}) {
    if (degree > 1 && (one_degree || number(0, 2) == 0)) continue;
    TensorDegree each{.degree = degree, .inside = std::max(1, 4 / degree), .near = number(4, 9), .far = number(1, 4)};
    for (int i = 0; i < layers; ++i)
      each.layers.push_back({.forward = number(1, 24 / degree),
                             .backward = number(1, 24 / degree),
                             .weights = number(0, 60),
                             .output = number(0, 12),
                             .states = number(1, 8),
                             .kept = number(0, 4)});
    job.degrees.push_back(std::move(each));
  }
  job.in_flight = static_cast<int>(number(1, 3));
  if (number(0, 2) == 0) job.capacity = number(20, 60);
  if (number(0, 1) == 0) job.replicas = number(0, 1) ? std::vector<int>{1, 2, 4} : std::vector<int>{1, 3};
  if (number(0, 2) == 0) job.ends = job.degrees[random() % job.degrees.size()].degree;
  return job;
}

// The formula of the header once more, layer by layer. `ahead`: forwards and backwards of the layers before.
double stage_seconds(const HybridJob& job, const TensorDegree& degree, const HybridStage& stage,
                     const std::pair<double, double>& ahead) {
  double work = 0, backward = 0, weights = 0, bytes = 0;
  for (int i = stage.first; i < stage.last; ++i) {
    const ChainLayer& layer = degree.layers[static_cast<std::size_t>(i)];
    work += layer.forward + layer.backward, backward += layer.backward, weights += layer.weights;
    bytes += layer.states + job.in_flight * layer.kept;
  }
  if (bytes > job.capacity) return 1e300;
  const int d = stage.replicas;
  double sent = 0;
  if (stage.first > 0) sent += degree.layers[static_cast<std::size_t>(stage.first) - 1].output;
  if (stage.last < static_cast<int>(degree.layers.size()))
    sent += degree.layers[static_cast<std::size_t>(stage.last) - 1].output;
  const double sum = 2.0 * (d - 1) / d * weights / (d > degree.inside ? degree.far : degree.near);
  return ahead.first + job.microbatches / d * std::max(work, sent / job.link) +
         std::max(ahead.second, std::max(0.0, sum - backward));
}

// The least of all; layers before a stage as fast as they can be (`fastest`), or as the stages before say.
double brute_force(const HybridJob& job, bool fastest) {
  const int layers = static_cast<int>(job.degrees.front().layers.size());
  double best = 1e300;
  const std::function<void(int, int, std::pair<double, double>, double)> go =
      [&](int first, int left, std::pair<double, double> ahead, double slowest) {
        if (slowest >= best) return;
        if (first == layers) {
          best = slowest;
          return;
        }
        for (int last = first + 1; last <= layers; ++last) {
          if (first == 0 && last == layers) continue;  // two stages at least
          for (const TensorDegree& degree : job.degrees) {
            if ((first == 0 || last == layers) && job.ends > 0 && degree.degree != job.ends) continue;
            for (int d = 1; d * degree.degree <= left; ++d) {
              if (!job.replicas.empty() && std::ranges::find(job.replicas, d) == job.replicas.end()) continue;
              const double own = stage_seconds(job, degree, {first, last, d, degree.degree}, ahead);
              auto next = ahead;
              for (int i = first; i < last; ++i) {
                double forward = 1e300, backward = 1e300;
                for (const TensorDegree& each : job.degrees)
                  if (fastest || each.degree == degree.degree)
                    forward = std::min(forward, each.layers[static_cast<std::size_t>(i)].forward),
                    backward = std::min(backward, each.layers[static_cast<std::size_t>(i)].backward);
                next.first += forward, next.second += backward;
              }
              go(last, left - d * degree.degree, next, std::max(slowest, own));
            }
          }
        }
      };
  go(0, job.devices, {0, 0}, 0);
  return best;
}

}  // namespace

// Of one degree: the least to a thousandth, and what it says of its stages. Of several: the bound is the least with layers before a stage
// as fast as they can be, and no plan is below it.
TEST(PartitionStep, EqualsBruteForce) {
  std::mt19937 random(20261121);
  int possible = 0, several = 0;
  for (int round = 0; round < 1200; ++round) {
    const bool one_degree = round % 2 == 0;
    const HybridJob job = random_job(random, 2 + round % 4, 2 + round % 6, one_degree);
    const double least = brute_force(job, true), exact = brute_force(job, false);
    const StepPartition found = partition_step(job);
    if (least >= 1e300) {
      EXPECT_TRUE(found.partition.stages.empty()) << round;
      continue;
    }
    ++possible, several += job.degrees.size() > 1;
    ASSERT_FALSE(found.partition.stages.empty()) << round;
    EXPECT_LE(found.bound, least * (1 + 1e-9)) << round;
    EXPECT_GE(found.bound * 1.0011, least) << round;
    EXPECT_LE(found.bound, exact * (1 + 1e-9)) << round;
    EXPECT_GE(found.partition.cost, exact * (1 - 1e-9)) << round;
    if (job.degrees.size() == 1) {
      EXPECT_LE(found.partition.cost, exact * 1.0011) << round;
    }
    EXPECT_DOUBLE_EQ(found.partition.cost, step_cost(job, found.partition.stages));
    EXPECT_GE(found.partition.stages.size(), 2u);
    const auto within = partition_within(job, least * (1 + 1e-9));
    ASSERT_TRUE(within) << round;
    int devices = 0;
    for (const HybridStage& stage : within->stages) devices += stage.devices();
    EXPECT_LE(devices, job.devices);
    EXPECT_FALSE(partition_within(job, least * (1 - 1e-9))) << round;
  }
  EXPECT_GT(possible, 600);
  EXPECT_GT(several, 200);
}

// Two layers of 1 + 2 and 3 + 6 seconds on four devices, 12 micro-batches, replicas 1, 2 or 3. One and three: the first takes 12 * 3 = 36, the
// second waits 1 second for its first micro-batch, works 12 / 3 * 9 = 36 and its last gradient takes 2 more: 39.
TEST(PartitionStep, ByHand) {
  HybridJob job{.devices = 4, .microbatches = 12, .replicas = {1, 2, 3}};
  job.degrees.push_back({.degree = 1, .layers = {{.forward = 1, .backward = 2}, {.forward = 3, .backward = 6}}});
  const StepPartition found = partition_step(job);
  EXPECT_EQ(found.partition.stages, (std::vector<HybridStage>{{0, 1, 1, 1}, {1, 2, 3, 1}}));
  EXPECT_DOUBLE_EQ(found.partition.cost, 39);
  // 4 bytes that a micro-batch keeps: 1F1B keeps four of them on the first stage (1 + 3 replicas behind one), one on each of the last.
  job.degrees[0].layers[0].kept = job.degrees[0].layers[1].kept = 4;
  job.in_flight = 0, job.capacity = 16;
  EXPECT_EQ(partition_step(job).partition.stages, found.partition.stages);
  job.capacity = 15;
  EXPECT_NE(partition_step(job).partition.stages, found.partition.stages);
}

TEST(PartitionStep, OneLayerHasNoTwoStages) {
  HybridJob job{.devices = 4, .microbatches = 12};
  job.degrees.push_back({.degree = 1, .layers = {{.forward = 1, .backward = 2}}});
  EXPECT_TRUE(partition_step(job).partition.stages.empty());
  EXPECT_TRUE(partition_step({}).partition.stages.empty());
}

}  // namespace foreshard::partition_step_test
