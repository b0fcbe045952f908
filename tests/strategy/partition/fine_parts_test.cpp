// Numbers of parts for a fine-grained pipeline against brute force over all choices.
#include "strategy/partition/fine_parts.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <random>

namespace foreshard::fine_parts_test {

namespace {

const std::vector<int> kAllowed = {1, 2, 4, 8};

std::vector<FineOperation> random_chain(std::mt19937& random, int count) {
  const auto number = [&](double least, double most) { return std::uniform_real_distribution<double>(least, most)(random); };
  const double overhead = number(0, 0.5), latency = number(0, 0.5);
  std::vector<FineOperation> chain;
  for (int i = 0; i < count; ++i)
    chain.push_back({.compute = number(0.5, 10), .communication = number(0.5, 10), .overhead = overhead, .latency = latency});
  return chain;
}

// The recurrence once more, with no state carried but all ends of all parts.
double seconds_by_hand(const std::vector<FineOperation>& chain, const std::vector<int>& parts) {
  double compute = 0, communication = 0;
  std::vector<std::vector<double>> ends;
  for (std::size_t l = 0; l < chain.size(); ++l) {
    ends.emplace_back();
    for (int k = 0; k < parts[l]; ++k) {
      if (l > 0)
        for (int j = 0; j < parts[l - 1]; ++j)  // parts whose samples begin before those of part k end
          if (j * parts[l] < (k + 1) * parts[l - 1]) compute = std::max(compute, ends[l - 1][static_cast<std::size_t>(j)]);
      compute += chain[l].overhead + chain[l].compute / parts[l];
      communication = std::max(communication, compute) + chain[l].latency + chain[l].communication / parts[l];
      ends[l].push_back(communication);
    }
  }
  return communication;
}

double best_of_all(const std::vector<FineOperation>& chain) {
  double best = 1e300;
  std::vector<int> parts(chain.size(), 0);
  for (std::size_t all = 0, count = std::size_t{1} << (2 * chain.size()); all < count; ++all) {
    for (std::size_t l = 0; l < chain.size(); ++l) parts[l] = kAllowed[all >> (2 * l) & 3U];
    best = std::min(best, seconds_by_hand(chain, parts));
  }
  return best;
}

double whole(const std::vector<FineOperation>& chain) { return fine_seconds(chain, std::vector<int>(chain.size(), 1)); }

}  // namespace

TEST(FineParts, ExactEqualsBruteForceAndOneStateIsCloseToIt) {
  std::mt19937 random(24);
  double worst = 1, sum = 0;
  std::int64_t states = 0;
  constexpr int kInstances = 600;
  for (int i = 0; i < kInstances; ++i) {
    const auto chain = random_chain(random, 1 + i % 5);
    const double best = best_of_all(chain);
    const FineParts exact = plan_fine_parts(chain, kAllowed, FineSearch::Pareto);
    const FineParts one = plan_fine_parts(chain, kAllowed);
    EXPECT_NEAR(exact.seconds, best, 1e-12 * best);
    EXPECT_NEAR(exact.seconds, seconds_by_hand(chain, exact.parts), 1e-12 * best);
    EXPECT_NEAR(one.seconds, seconds_by_hand(chain, one.parts), 1e-12 * best);
    worst = std::max(worst, one.seconds / best), sum += one.seconds / best;
    states = std::max(states, exact.most_states);
    EXPECT_LT(whole(chain) / exact.seconds, 2);  // no time is below the sum of all compute, nor that of all communication
  }
  EXPECT_LE(worst, 1.03);
  RecordProperty("worst_of_one_state", std::to_string(worst));
  RecordProperty("mean_of_one_state", std::to_string(sum / kInstances));
  RecordProperty("most_states", std::to_string(states));
}

// techniques.md 3.2: c = m = 4, overheads of 0.02, the whole chain against n parts of everything; three digits.
TEST(FineParts, TableOfEqualOperations) {
  struct Row {
    std::size_t operations;
    double speed_up[4];  // n = 2, 4, 8, 16
  };
  const Row rows[] = {{4, {1.769, 1.855, 1.874, 1.832}},
                      {16, {1.930, 1.940, 1.918, 1.854}},
                      {64, {1.975, 1.963, 1.929, 1.859}},
                      {192, {1.985, 1.968, 1.931, 1.861}}};
  for (const Row& row : rows) {
    const std::vector<FineOperation> chain(row.operations, {4, 4, 0.02, 0.02});
    EXPECT_NEAR(whole(chain), 8.04 * static_cast<double>(row.operations), 1e-9);
    for (int i = 0; i < 4; ++i) {
      const double seconds = fine_seconds(chain, std::vector<int>(row.operations, 2 << i));
      EXPECT_NEAR(whole(chain) / seconds, row.speed_up[i], 5e-4) << row.operations << " operations, " << (2 << i) << " parts";
    }
  }
}

// Twice the operations are twice the work: from one state for each number of parts there are 4 x (1 + 2 + 4 + 8) parts to place, three
// times.
TEST(FineParts, WorkIsLinearInTheOperations) {
  std::mt19937 random(3);
  for (const int count : {1, 2, 10, 20, 400}) {
    const FineParts plan = plan_fine_parts(random_chain(random, count), kAllowed);
    EXPECT_EQ(plan.steps, 3 * (15 + (count - 1) * 60));
    EXPECT_EQ(plan.most_states, 1);
  }
}

TEST(FineParts, NothingToHideStaysWhole) {
  const std::vector<FineOperation> chain(6, {.compute = 4, .communication = 0, .overhead = 0.1, .latency = 0.1});
  EXPECT_EQ(plan_fine_parts(chain, kAllowed, FineSearch::Pareto).parts, std::vector<int>(6, 1));
  EXPECT_EQ(plan_fine_parts({}, kAllowed).seconds, 0);
}

}  // namespace foreshard::fine_parts_test
