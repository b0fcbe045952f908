#include "strategy/frameworks/caching_allocator.h"

#include <gtest/gtest.h>

#include <iterator>
#include <map>
#include <random>
#include <vector>

namespace foreshard::caching_allocator_test {
namespace {

constexpr std::int64_t kMiB = 1 << 20;

TEST(CachingAllocator, SmallRequestsShareSegmentsOfTwoMebibytes) {
  CachingAllocator memory;
  memory.allocate(1);
  EXPECT_EQ(memory.allocated(), 512);
  memory.allocate(kMiB);
  memory.allocate(kMiB);  // 1 MiB - 512 B are left: not enough
  EXPECT_EQ(memory.allocated(), 512 + 2 * kMiB);
  EXPECT_EQ(memory.reserved(), 4 * kMiB);
}

// 49.125 MiB of its own segment of 50: the rest, 0.875 MiB, is too small to keep. 98.25 of 100: 1.75 MiB are kept.
TEST(CachingAllocator, LargeRequestsCountARestOfAMebibyte) {
  CachingAllocator memory;
  memory.allocate(49 * kMiB + kMiB / 8);
  EXPECT_EQ(memory.allocated(), 50 * kMiB);
  memory.allocate(98 * kMiB + kMiB / 4);
  EXPECT_EQ(memory.allocated(), 148 * kMiB + kMiB / 4);
  memory.allocate(3 * kMiB / 2);  // from the 1.75 MiB that are left, all of it
  EXPECT_EQ(memory.allocated(), 150 * kMiB);
  EXPECT_EQ(memory.reserved(), 150 * kMiB);
}

// 20 = 6 + 6 + 6 + 2, and 1.5 of the 2 takes them all.
TEST(CachingAllocator, MiddleRequestsShareSegmentsOfTwentyMebibytes) {
  CachingAllocator memory;
  for (int i = 0; i < 3; ++i) memory.allocate(6 * kMiB);
  EXPECT_EQ(memory.allocated(), 18 * kMiB);
  memory.allocate(3 * kMiB / 2);
  EXPECT_EQ(memory.allocated(), 20 * kMiB);
  EXPECT_EQ(memory.reserved(), 20 * kMiB);
}

TEST(CachingAllocator, NeverLessThanAskedForNorMoreThanReserved) {
  std::mt19937 random(5);
  CachingAllocator memory;
  std::int64_t asked = 0, requests = 0;
  for (int i = 0; i < 2000; ++i) {
    const std::int64_t bytes = static_cast<std::int64_t>(random() % (1U << (8 + random() % 20)));
    memory.allocate(bytes);
    asked += bytes, ++requests;
    ASSERT_GE(memory.allocated(), asked);
    ASSERT_LE(memory.allocated(), asked + requests * (kMiB + 512));
    ASSERT_LE(memory.allocated(), memory.reserved());
  }
}

// A segment of 20 MiB: a 6, b 6, c 6 and 2 that are left.
//
//   a freed, c freed      | 6 free | b 6 | 6 + 2 free |       c merges with the rest behind it
//   5 asked for           | 6      | b 6 | 8 free     |       the smaller piece; 1 MiB over 5 is too little to keep
//   7 asked for           | 6      | b 6 | 8          |       again
//   all freed             | 20 free                   |
TEST(CachingAllocator, FreedBlocksMergeWithTheirNeighboursAndAreTakenBestFitFirst) {
  CachingAllocator memory;
  const int a = memory.allocate(6 * kMiB), b = memory.allocate(6 * kMiB), c = memory.allocate(6 * kMiB);
  memory.free(a);
  memory.free(c);
  EXPECT_EQ(memory.allocated(), 6 * kMiB);
  const int five = memory.allocate(5 * kMiB);
  EXPECT_EQ(memory.place(five).offset, 0);
  EXPECT_EQ(memory.place(five).bytes, 6 * kMiB);
  const int seven = memory.allocate(7 * kMiB);
  EXPECT_EQ(memory.place(seven).offset, 12 * kMiB);
  EXPECT_EQ(memory.allocated(), 20 * kMiB);
  EXPECT_EQ(memory.reserved(), 20 * kMiB);
  memory.free(five);
  memory.free(seven);
  memory.free(b);
  EXPECT_EQ(memory.allocated(), 0);
  EXPECT_EQ(memory.place(memory.allocate(20 * kMiB)).offset, 0);
  EXPECT_EQ(memory.reserved(), 20 * kMiB);
  EXPECT_EQ(memory.allocated_peak(), 20 * kMiB);
}

// Freed small blocks do not serve large requests, though they are in one device: 2 MiB free, 20 more reserved.
TEST(CachingAllocator, PoolsAreApart) {
  CachingAllocator memory;
  memory.free(memory.allocate(1));
  memory.allocate(3 * kMiB / 2);
  EXPECT_EQ(memory.reserved(), 22 * kMiB);
  memory.free(memory.allocate(0));  // nothing
  EXPECT_EQ(memory.allocated(), 3 * kMiB / 2);
}

TEST(CachingAllocator, NoTwoBlocksOverlapWhateverIsFreed) {
  std::mt19937 random(6);
  CachingAllocator memory;
  struct Held {
    int block = 0;
    std::int64_t bytes = 0;
  };
  std::vector<Held> held;
  for (int i = 0; i < 5000; ++i) {
    if (!held.empty() && random() % 100 < 48) {
      std::swap(held[random() % held.size()], held.back());
      memory.free(held.back().block);
      held.pop_back();
    } else {
      const std::int64_t bytes = 1 + static_cast<std::int64_t>(random() % (1U << (8 + random() % 18)));
      held.push_back({memory.allocate(bytes), bytes});
    }
    std::int64_t allocated = 0;
    std::map<std::pair<int, std::int64_t>, std::int64_t> places;  // (segment, offset) -> end
    for (const Held& block : held) {
      const CachingAllocator::Place& at = memory.place(block.block);
      ASSERT_GE(at.bytes, block.bytes);
      allocated += at.bytes;
      ASSERT_TRUE(places.emplace(std::pair{at.segment, at.offset}, at.offset + at.bytes).second);
    }
    for (auto next = places.begin(); next != places.end(); ++next)
      if (const auto one = next; std::next(one) != places.end() && std::next(one)->first.first == one->first.first)
        ASSERT_LE(one->second, std::next(one)->first.second);
    ASSERT_EQ(allocated, memory.allocated());
    ASSERT_LE(memory.allocated(), memory.allocated_peak());
    ASSERT_LE(memory.allocated_peak(), memory.reserved());
  }
  for (const Held& block : held) memory.free(block.block);
  EXPECT_EQ(memory.allocated(), 0);
}

// A block that one stream freed is not reused by another, only by the same.
TEST(CachingAllocator, StreamsHavePoolsOfTheirOwn) {
  CachingAllocator memory;
  memory.free(memory.allocate(64 * kMiB, 1));
  memory.allocate(64 * kMiB, 0);
  EXPECT_EQ(memory.reserved(), 128 * kMiB);
  memory.allocate(64 * kMiB, 1);
  EXPECT_EQ(memory.reserved(), 128 * kMiB);
}

// Two free segments of 40 MiB: a third request of 60 exceeds the limit of 100, so both go back to the device; a split segment stays.
TEST(CachingAllocator, AtTheLimitFreeSegmentsGoBackToTheDevice) {
  CachingAllocator memory(100 * kMiB);
  const int first = memory.allocate(40 * kMiB), second = memory.allocate(40 * kMiB);
  memory.free(first);
  memory.free(second);
  EXPECT_EQ(memory.reserved(), 80 * kMiB);
  memory.allocate(60 * kMiB);
  EXPECT_EQ(memory.reserved(), 60 * kMiB);
  EXPECT_FALSE(memory.overflowed());
  const int third = memory.allocate(40 * kMiB);
  memory.free(third);
  memory.allocate(20 * kMiB);  // a part of the segment of 40
  memory.allocate(30 * kMiB);
  EXPECT_EQ(memory.reserved(), 130 * kMiB);
  EXPECT_TRUE(memory.overflowed());
}

}  // namespace
}  // namespace foreshard::caching_allocator_test
