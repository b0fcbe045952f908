#include "strategy/memory/block_meetings.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <random>
#include <set>
#include <tuple>

#include "tests/strategy/support_packing.h"

namespace foreshard::block_meetings_test {
namespace {

// time      0 1 2 3 4
//  a        [===)         a and b are alive together at 1, b and c at 3; c begins when a has ended
//  b          [=======)
//  c            [=)
const std::vector<TimedBlock> kThree = {{{1}, {{0, 2}}}, {{1}, {{1, 5}}}, {{1}, {{2, 4}}}};

TEST(BlockMeetings, EndsComeBeforeBegins) {
  std::vector<std::tuple<std::int64_t, bool, int>> edges;
  for (const LifetimeEdge& edge : lifetime_edges(kThree)) edges.emplace_back(edge.time, edge.begins, edge.block);
  EXPECT_EQ(edges, (std::vector<std::tuple<std::int64_t, bool, int>>{
                       {0, true, 0}, {1, true, 1}, {2, false, 0}, {2, true, 2}, {4, false, 2}, {5, false, 1}}));
  EXPECT_TRUE(lifetime_edges(std::vector<TimedBlock>{{{1}, {{3, 3}}}}).empty());  // an empty lifetime
}

TEST(BlockMeetings, ThoseThatOverlap) {
  EXPECT_EQ(meetings(kThree), (std::vector<std::vector<int>>{{1}, {0, 2}, {1}}));
  EXPECT_EQ(alive_sets(kThree), (std::vector<std::vector<int>>{{0, 1}, {1, 2}}));
}

// Against every pair of lifetimes, and every moment.
TEST(BlockMeetings, AreThoseOfEveryMoment) {
  std::mt19937 random(3);
  for (int round = 0; round < 200; ++round) {
    const std::vector<TimedBlock> blocks = random_blocks({.count = 1 + round % 20, .times = 12}, random);
    const auto alive = [&](int block, std::int64_t time) {
      return std::ranges::any_of(blocks[static_cast<std::size_t>(block)].lifetimes,
                                 [&](const Lifetime& life) { return life.begin <= time && time < life.end; });
    };
    std::vector<std::set<int>> together(blocks.size());
    std::set<std::vector<int>> sets;
    for (std::int64_t time = 0; time < 40; ++time) {
      std::vector<int> now;
      for (int b = 0; b < static_cast<int>(blocks.size()); ++b)
        if (alive(b, time)) now.push_back(b);
      for (const int a : now)
        for (const int b : now)
          if (a != b) together[static_cast<std::size_t>(a)].insert(b);
      if (!now.empty()) sets.insert(now);
    }
    const std::vector<std::vector<int>> found = meetings(blocks);
    for (std::size_t b = 0; b < blocks.size(); ++b)
      ASSERT_EQ(found[b], std::vector<int>(together[b].begin(), together[b].end()));
    const std::vector<std::vector<int>> largest = alive_sets(blocks);
    for (const std::vector<int>& set : largest) ASSERT_TRUE(sets.contains(set)) << round;
    for (const std::vector<int>& set : sets)  // each set of a moment is contained in one of those
      ASSERT_TRUE(std::ranges::any_of(largest, [&](const auto& other) { return std::ranges::includes(other, set); })) << round;
  }
}

}  // namespace
}  // namespace foreshard::block_meetings_test
