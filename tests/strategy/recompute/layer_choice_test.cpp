// A strategy per layer against brute force over all assignments, with small whole numbers so that sums are exact.
#include "strategy/recompute/layer_choice.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <random>

namespace foreshard::layer_choice_test {

namespace {

constexpr double kNever = std::numeric_limits<double>::infinity();

// Faster strategies take more memory, mostly; some layers cannot have some of them.
LayerChoiceJob random_job(std::mt19937& random, int layers, int strategies) {
  const auto number = [&](int least, int most) {
    return static_cast<double>(std::uniform_int_distribution<int>(least, most)(random));
  };
  LayerChoiceJob job;
  const auto count = static_cast<std::size_t>(strategies);
  for (int i = 0; i < layers; ++i) {
    std::vector<LayerOption> options;
    for (int s = 0; s < strategies; ++s) {
      options.push_back({number(1, 20), number(0, 20)});
      if (s > 0 && number(0, 9) == 0) options.back().seconds = kNever;
    }
    job.layers.push_back(std::move(options));
  }
  if (number(0, 3) > 0) {
    job.switching.assign(count, std::vector<double>(count, 0));
    for (std::size_t from = 0; from < count; ++from)
      for (std::size_t to = 0; to < count; ++to)
        if (from != to) job.switching[from][to] = number(0, 6);
  }
  job.memory = number(3 * layers, 16 * layers);
  return job;
}

std::vector<LayerChoice> all_that_fit(const LayerChoiceJob& job, double memory) {
  std::vector<LayerChoice> all;
  std::vector<int> chosen(job.layers.size(), 0);
  for (;;) {
    double seconds = 0, bytes = 0;
    for (std::size_t i = 0; i < chosen.size(); ++i) {
      const auto s = static_cast<std::size_t>(chosen[i]);
      seconds += job.layers[i][s].seconds, bytes += job.layers[i][s].bytes;
      if (i > 0 && !job.switching.empty()) seconds += job.switching[static_cast<std::size_t>(chosen[i - 1])][s];
    }
    if (seconds < kNever && bytes <= memory) all.push_back({chosen, seconds, bytes});
    std::size_t i = 0;
    while (i < chosen.size() && ++chosen[i] == static_cast<int>(job.layers.front().size())) chosen[i++] = 0;
    if (i == chosen.size()) return all;
  }
}

double fastest(const std::vector<LayerChoice>& all) {
  double least = kNever;
  for (const LayerChoice& each : all) least = std::min(least, each.seconds);
  return least;
}

}  // namespace

TEST(LayerChoice, ExactAndGridAgainstBruteForce) {
  std::mt19937 random(61);
  int impossible = 0, worse = 0;
  for (int trial = 0; trial < 1500; ++trial) {
    const int layers = 1 + trial % 6, strategies = 1 + trial / 6 % 4;
    const LayerChoiceJob job = random_job(random, layers, strategies);
    const std::vector<LayerChoice> all = all_that_fit(job, job.memory);
    const LayerChoice exact = layer_choice_exact(job);
    ASSERT_EQ(exact.seconds, fastest(all)) << trial;
    ASSERT_EQ(exact.strategies.empty(), all.empty());
    if (!all.empty()) {
      ASSERT_EQ(layer_choice(job, exact.strategies), exact);
      ASSERT_LE(exact.bytes, job.memory);
    }
    impossible += all.empty();
    for (const int cells : {3, 10, 64}) {
      const LayerChoice grid = layer_choice_on_grid(job, cells);
      const double bound = fastest(all_that_fit(job, job.memory - layers * job.memory / cells));
      ASSERT_LE(grid.seconds, bound) << trial << " " << cells;
      ASSERT_GE(grid.seconds, exact.seconds);
      if (grid.strategies.empty()) continue;
      ASSERT_LE(grid.bytes, job.memory);
      ASSERT_EQ(layer_choice(job, grid.strategies), grid);
      worse += grid.seconds > exact.seconds;
    }
  }
  EXPECT_GT(impossible, 20);
  EXPECT_LT(impossible, 700);
  EXPECT_GT(worse, 20) << "the grid is put to the test";
}

// Every assignment that fits is as slow and as large as one of the front, and none of the front beats another.
TEST(LayerChoice, TheFrontIsThatOfAllAssignments) {
  std::mt19937 random(62);
  for (int trial = 0; trial < 1000; ++trial) {
    const LayerChoiceJob job = random_job(random, 1 + trial % 5, 1 + trial / 5 % 4);
    const std::vector<LayerChoice> front = layer_choice_front(job);
    for (std::size_t i = 1; i < front.size(); ++i) {
      ASSERT_GT(front[i].seconds, front[i - 1].seconds) << trial;
      ASSERT_LT(front[i].bytes, front[i - 1].bytes) << trial;
    }
    for (const LayerChoice& each : all_that_fit(job, job.memory)) {
      bool beaten = false;
      for (const LayerChoice& best : front) beaten |= best.seconds <= each.seconds && best.bytes <= each.bytes;
      ASSERT_TRUE(beaten) << trial;
    }
  }
}

// Finer grids and more memory are never slower; a grid so fine that whole bytes are whole cells is exact.
TEST(LayerChoice, FinerGridsAndMoreMemoryAreNoSlower) {
  std::mt19937 random(63);
  for (int trial = 0; trial < 200; ++trial) {
    LayerChoiceJob job = random_job(random, 6, 4);
    double before = kNever;
    for (const int cells : {4, 8, 16, 32}) {
      const double now = layer_choice_on_grid(job, cells).seconds;
      ASSERT_LE(now, before) << trial << " " << cells;
      before = now;
    }
    ASSERT_EQ(layer_choice_on_grid(job, static_cast<int>(job.memory)).seconds, layer_choice_exact(job).seconds) << trial;
    const double tight = layer_choice_exact(job).seconds;
    job.memory += 7;
    ASSERT_LE(layer_choice_exact(job).seconds, tight);
  }
}

// Three layers, kept (1 s, 4 bytes) or recomputed (2 s, 1 byte), in 9 bytes: one is recomputed. A switch costs 0.75 s: at an end
// 1 + 1 + 2 + 0.75 = 4.75 s, in the middle 5.5 s.
TEST(LayerChoice, SwitchingKeepsEqualLayersTogether) {
  const LayerChoiceJob job{.layers = {3, {{1, 4}, {2, 1}}}, .switching = {{0, 0.75}, {0.75, 0}}, .memory = 9};
  const LayerChoice found = layer_choice_exact(job);
  EXPECT_EQ(found.seconds, 4.75);
  EXPECT_EQ(found.bytes, 9);
  EXPECT_TRUE(found.strategies == (std::vector<int>{0, 0, 1}) || found.strategies == (std::vector<int>{1, 0, 0}));
  EXPECT_EQ(layer_choice_on_grid(job, 9).seconds, 4.75);
}

TEST(LayerChoice, NothingFits) {
  const LayerChoiceJob job{.layers = {3, {{1, 4}}}, .memory = 11};
  EXPECT_TRUE(layer_choice_exact(job).strategies.empty());
  EXPECT_TRUE(layer_choice_front(job).empty());
  EXPECT_TRUE(layer_choice_on_grid(job, 100).strategies.empty());
  EXPECT_TRUE(layer_choice_exact({}).strategies.empty());
}

}  // namespace foreshard::layer_choice_test
