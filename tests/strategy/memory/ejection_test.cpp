#include "strategy/memory/ejection.h"

#include "strategy/memory/block_meetings.h"
#include "tests/strategy/support_packing.h"

namespace foreshard::ejection_test {
namespace {

constexpr EjectionLimits kLimits{.steps_per_block = 1'000, .tests = 2'000'000};

std::optional<Packing> into(const std::vector<TimedBlock>& blocks, Bytes capacity, std::span<const Bytes> first = {}) {
  return pack_by_ejection(blocks, overlaps(blocks), capacity, 1, first, kLimits);
}

// It finds the smallest arenas, as the tree search proves them to be, and nothing below.
TEST(Ejection, FindsTheSmallestArenasOfSmallInstances) {
  std::mt19937 random(11);
  int proved = 0, found = 0;
  for (int round = 0; round < 200; ++round) {
    const auto blocks =
        random_blocks({.count = 6 + round % 9, .times = 8, .lifetimes = 1 + round % 2, .most_bytes = 30}, random);
    const PackSearch smallest = pack_smallest(blocks, {}, 200'000);
    if (smallest.answer != PackAnswer::Packed) continue;
    ++proved;
    const auto packing = into(blocks, smallest.packing.arena);
    if (packing) {
      ++found;
      expect_packed(blocks, *packing);
      EXPECT_EQ(packing->arena, smallest.packing.arena);
    }
    if (round % 10 == 0) EXPECT_FALSE(into(blocks, smallest.packing.arena - Bytes{1}));
  }
  EXPECT_GT(proved, 150);
  EXPECT_EQ(found, proved);
}

TEST(Ejection, KeepsAPackingThatFits) {
  std::mt19937 random(3);
  const auto blocks = random_blocks({.count = 50, .times = 20}, random);
  const Packing packing = pack(blocks);
  const auto same = into(blocks, packing.arena, packing.offsets);
  ASSERT_TRUE(same);
  EXPECT_EQ(same->offsets, packing.offsets);
}

TEST(Ejection, OffsetsAreAligned) {
  std::mt19937 random(4);
  const auto blocks = random_blocks({.count = 40, .times = 20}, random);
  const Bytes capacity = pack(blocks, {.alignment = 16}).arena + Bytes{5};
  const auto packing = pack_by_ejection(blocks, overlaps(blocks), capacity, 16);
  ASSERT_TRUE(packing);
  expect_packed(blocks, *packing, 16);
  EXPECT_LE(packing->arena, capacity);
}

TEST(Ejection, ABlockLargerThanTheArenaFitsNowhere) { EXPECT_FALSE(into({{{4}, {{0, 1}}}}, Bytes{3})); }

}  // namespace
}  // namespace foreshard::ejection_test
