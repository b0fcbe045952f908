// The order of events: by time, and by the order of planning among equal times.
#include "replay/event_queue.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <random>

namespace foreshard::player {

TEST(EventQueue, TheEarliestComesFirst) {
  EventQueue queue;
  EXPECT_TRUE(queue.empty());
  queue.plan(3, 0, 30, 7);
  queue.plan(1, 2, 10, 8);
  queue.plan(2, 0, 20, 9);
  EXPECT_EQ(queue.first().which, 10U);
  const Event first = queue.take_first();
  EXPECT_EQ(first.time, 1);
  EXPECT_EQ(first.kind, 2U);
  EXPECT_EQ(first.version, 8U);
  EXPECT_EQ(queue.take_first().which, 20U);
  EXPECT_EQ(queue.take_first().which, 30U);
  EXPECT_TRUE(queue.empty());
}

// Hundreds of events at few times, some taken while others are planned: each that is taken is the earliest of a sorted list.
TEST(EventQueue, EventsOfEqualTimeComeAsPlanned) {
  std::mt19937 random(3);
  EventQueue queue;
  std::vector<std::pair<int, std::uint32_t>> waiting;  // time, number of the event
  std::uint32_t planned = 0;
  for (int step = 0; step < 2000; ++step) {
    if (waiting.empty() || (step < 1500 && random() % 3 != 0)) {
      const int time = static_cast<int>(random() % 5);
      queue.plan(time, 0, planned, 0);
      waiting.emplace_back(time, planned++);
      continue;
    }
    const auto earliest = std::min_element(waiting.begin(), waiting.end());
    ASSERT_EQ(queue.first().which, earliest->second);
    ASSERT_EQ(queue.take_first().time, earliest->first);
    waiting.erase(earliest);
  }
  EXPECT_GT(planned, 900U);
}

}  // namespace foreshard::player
