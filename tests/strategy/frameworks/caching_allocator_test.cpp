#include "strategy/frameworks/caching_allocator.h"

#include <gtest/gtest.h>

#include <random>

namespace foreshard {
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

}  // namespace
}  // namespace foreshard
