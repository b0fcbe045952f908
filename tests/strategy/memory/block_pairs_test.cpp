#include "strategy/memory/block_pairs.h"

#include <gtest/gtest.h>

#include <random>
#include <set>
#include <utility>

namespace foreshard::block_pairs_test {
namespace {

// Against pairs as a set. Rows end within, at and right after a word of 64 bits.
TEST(BlockPairs, BothWaysIsSymmetricWithoutTheDiagonal) {
  std::mt19937 random(5);
  for (const int blocks : {0, 1, 2, 63, 64, 65, 127, 128, 129, 200}) {
    BlockPairs pairs(static_cast<std::size_t>(blocks));
    std::set<std::pair<int, int>> expected;
    for (int a = 0; a < blocks; ++a) {
      BlockPairs::Row row((static_cast<std::size_t>(blocks) + 63) / 64, 0);
      for (int b = 0; b < blocks; ++b) {
        if (random() % 8 != 0) continue;
        row[BlockPairs::word(b)] |= BlockPairs::bit(b);
        if (a != b) expected.insert({a, b}), expected.insert({b, a});
      }
      pairs.add_row(a, row);
    }
    pairs.both_ways();
    std::set<std::pair<int, int>> found;
    for (int a = 0; a < blocks; ++a) pairs.each(a, [&](int b) { found.insert({a, b}); });
    EXPECT_EQ(found, expected) << blocks;
  }
}

TEST(BlockPairs, EachButLeavesOutWhatIsKnown) {
  const BlockPairs::Row row = {0b1011, 0b1}, known = {0b0010, 0};
  std::vector<int> found;
  BlockPairs::each_but(row, known, [&](int b) { found.push_back(b); });
  EXPECT_EQ(found, (std::vector<int>{0, 3, 64}));
}

}  // namespace
}  // namespace foreshard::block_pairs_test
