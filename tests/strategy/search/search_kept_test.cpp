#include "strategy/search/search_kept.h"

#include <gtest/gtest.h>

#include <algorithm>

namespace foreshard::search_kept_test {
namespace {

Kept kept(int zero, double score, std::int64_t order) {
  Kept one{.score = score, .time = score, .order = order};
  one.point.zero = static_cast<std::int8_t>(zero);
  return one;
}

int of_zero(const Family& family, int zero) {
  return static_cast<int>(
      std::count_if(family.variants.begin(), family.variants.end(), [&](const Kept& one) { return one.point.zero == zero; }));
}

// The screen takes ZeRO 2 for a little faster than it is: twenty of its variants stand before the first of ZeRO 1.
TEST(SearchFamily, KeepsTheBestOfEachZeroStage) {
  Family family;
  std::int64_t order = 0;
  for (int i = 0; i < 20; ++i) family.offer(kept(2, 1.0 + 0.001 * ((7 * i) % 20), order++), 16, 6);
  for (int i = 0; i < 3; ++i) family.offer(kept(1, 1.03 + 0.001 * i, order++), 16, 6);
  ASSERT_EQ(family.variants.size(), 9U);
  EXPECT_EQ(of_zero(family, 2), 6);
  EXPECT_EQ(of_zero(family, 1), 3);
  EXPECT_DOUBLE_EQ(family.variants.front().score, 1.0);
  EXPECT_DOUBLE_EQ(family.variants[5].score, 1.005);  // the six best of the twenty
  EXPECT_TRUE(std::is_sorted(family.variants.begin(), family.variants.end()));
}

// An uneven split has to gain more than the noise, 0.3 %: 104.11 s against 104.31 s, 0.19 %, is named, not chosen; 103.9 s, 0.39 %, is.
TEST(SearchFamily, ASimpleStrategyStaysWithinTheNoise) {
  Candidate even, uneven;
  even.strategy.pipeline.layer_split = "5x14,6,4", even.score = 104.31;
  uneven.strategy.pipeline.layer_split = "5x2,6x9,5,3,2,5,1", uneven.score = 104.11, uneven.handicap = 1.003;
  EXPECT_TRUE(is_simple(even.strategy));
  EXPECT_FALSE(is_simple(uneven.strategy));
  const Candidate best = better_of(even, uneven);
  EXPECT_EQ(best.strategy.pipeline.layer_split, even.strategy.pipeline.layer_split);
  ASSERT_TRUE(best.less_simple.has_value());
  EXPECT_NEAR(best.less_simple->gain, 0.0019, 0.00005);
  EXPECT_EQ(best.less_simple->strategy.pipeline.layer_split, uneven.strategy.pipeline.layer_split);
  uneven.score = 103.9;
  EXPECT_EQ(better_of(even, uneven).strategy.pipeline.layer_split, uneven.strategy.pipeline.layer_split);
  EXPECT_FALSE(better_of(even, uneven).less_simple.has_value());
}

TEST(SearchFamily, TheWorstOfAllGivesWayWhenItIsFull) {
  Family family;
  for (int i = 0; i < 8; ++i) family.offer(kept(i % 4, 1.0 + i, i), 4, 2);
  EXPECT_EQ(family.variants.size(), 4U);
  EXPECT_DOUBLE_EQ(family.variants.back().score, 4.0);  // of 1 ... 8
  family.offer(kept(3, 0.5, 9), 4, 2);
  EXPECT_DOUBLE_EQ(family.variants.front().score, 0.5);
  EXPECT_DOUBLE_EQ(family.variants.back().score, 3.0);
}

}  // namespace
}  // namespace foreshard::search_kept_test
