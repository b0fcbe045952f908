#include <algorithm>
#include <functional>

#include "tests/strategy/support_packing.h"

namespace foreshard::pack_exact_test {
namespace {

// The smallest arena, by trying every offset of every block.
std::int64_t smallest_arena(const std::vector<TimedBlock>& blocks) {
  std::int64_t best = 0;
  for (const TimedBlock& block : blocks) best += block.bytes.value;
  std::vector<std::int64_t> offsets(blocks.size());
  const std::function<void(std::size_t, std::int64_t)> place = [&](std::size_t b, std::int64_t top) {
    if (top >= best) return;
    if (b == blocks.size()) {
      best = top;
      return;
    }
    for (offsets[b] = 0; offsets[b] + blocks[b].bytes.value < best; ++offsets[b]) {
      const auto shares = [&](std::size_t a) {
        return alive_together(blocks[a], blocks[b]) && offsets[a] < offsets[b] + blocks[b].bytes.value &&
               offsets[b] < offsets[a] + blocks[a].bytes.value;
      };
      bool free = true;
      for (std::size_t a = 0; a < b && free; ++a) free = !shares(a);
      if (free) place(b + 1, std::max(top, offsets[b] + blocks[b].bytes.value));
    }
  };
  place(0, 0);
  return best;
}

TEST(PackInto, FindsTheSmallestArenaAndProvesThatThereIsNoSmallerOne) {
  std::mt19937 random(5);
  int above_bound = 0;
  for (int round = 0; round < 300; ++round) {
    const std::vector<TimedBlock> blocks =
        random_blocks({.count = 4 + round % 4, .times = 8, .lifetimes = 1 + round % 3, .most_bytes = 4}, random);
    const Bytes arena{smallest_arena(blocks)};
    const PackSearch found = pack_into(blocks, arena, 1'000'000);
    ASSERT_EQ(found.answer, PackAnswer::Packed) << "round " << round;
    expect_packed(blocks, found.packing);
    EXPECT_EQ(found.packing.arena, arena);
    EXPECT_EQ(pack_into(blocks, arena - Bytes{1}, 1'000'000).answer, PackAnswer::Impossible) << "round " << round;
    EXPECT_GE(pack(blocks).arena, arena);
    const PackSearch smallest = pack_smallest(blocks, {.moves = 0}, 1'000'000);
    EXPECT_EQ(smallest.answer, PackAnswer::Packed);
    EXPECT_EQ(smallest.packing.arena, arena);
    expect_packed(blocks, smallest.packing);
    above_bound += arena > live_bound(blocks) ? 1 : 0;
  }
  EXPECT_GE(above_bound, 10);  // so "none" is not said for the bound's sake only
}

TEST(PackInto, OffsetsAreAligned) {
  const std::vector<TimedBlock> blocks = {{{5}, {{0, 2}}}, {{5}, {{1, 4}}}, {{3}, {{1, 2}}}};
  const PackSearch found = pack_into(blocks, {24}, 1000, 8);
  ASSERT_EQ(found.answer, PackAnswer::Packed);
  expect_packed(blocks, found.packing, 8);
  EXPECT_EQ(pack_into(blocks, {23}, 1000, 8).answer, PackAnswer::Impossible);
}

TEST(PackInto, NothingFitsIntoNothing) {
  EXPECT_EQ(pack_into({}, {}, 10).answer, PackAnswer::Packed);
  EXPECT_EQ(pack_into(std::vector<TimedBlock>{{{1}, {{0, 1}}}}, {}, 10).answer, PackAnswer::Impossible);
}

TEST(PackInto, GivesUpAfterItsNodesAndTakesTheSameOnesEveryTime) {
  const std::vector<TimedBlock> blocks = minimalloc_blocks('C');
  ASSERT_EQ(blocks.size(), 203u);
  const PackSearch little = pack_into(blocks, kMinimallocCapacity, 1000);
  EXPECT_EQ(little.answer, PackAnswer::GaveUp);
  EXPECT_EQ(little.nodes, 1000);
  const PackSearch once = pack_into(blocks, kMinimallocCapacity, 1'000'000);
  const PackSearch again = pack_into(blocks, kMinimallocCapacity, 1'000'000);
  ASSERT_EQ(once.answer, PackAnswer::Packed);
  EXPECT_EQ(once.nodes, again.nodes);
  EXPECT_EQ(once.packing.offsets, again.packing.offsets);
}

// Out of nodes, it has at least what the rules found.
TEST(PackInto, TheSmallestArenaIsSearchedForWithinANumberOfNodes) {
  const std::vector<TimedBlock> blocks = minimalloc_blocks('K');
  const PackSearch none = pack_smallest(blocks, {}, 0);
  EXPECT_EQ(none.answer, PackAnswer::GaveUp);
  EXPECT_EQ(none.packing.arena, pack(blocks).arena);
  const PackSearch some = pack_smallest(blocks, {}, 4000);
  EXPECT_EQ(some.answer, PackAnswer::GaveUp);
  EXPECT_LE(some.nodes, 4000);
  EXPECT_LE(some.packing.arena, none.packing.arena);
  expect_packed(blocks, some.packing);
  const PackSearch all = pack_smallest(blocks, {}, 100'000);
  EXPECT_EQ(all.answer, PackAnswer::Packed);
  EXPECT_EQ(all.packing.arena, kMinimallocCapacity);  // the bound
}

// Those inputs of google/minimalloc that take less than a second; bench/packing_bench.cpp packs all eleven.
TEST(PackInto, PacksHardInputsIntoTheirCapacity) {
  for (const char letter : {'A', 'C', 'E', 'F', 'G', 'K'}) {
    const std::vector<TimedBlock> blocks = minimalloc_blocks(letter);
    ASSERT_GT(blocks.size(), 150u) << letter;
    const PackSearch found = pack_into(blocks, kMinimallocCapacity, 2'000'000);
    ASSERT_EQ(found.answer, PackAnswer::Packed) << letter;
    EXPECT_LE(found.packing.arena, kMinimallocCapacity);
    expect_packed(blocks, found.packing);
  }
}

}  // namespace
}  // namespace foreshard::pack_exact_test
