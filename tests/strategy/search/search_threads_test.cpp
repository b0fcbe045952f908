#include "strategy/search/search_threads.h"

#include <gtest/gtest.h>

#include <atomic>
#include <stdexcept>

namespace foreshard::search_threads_test {

// Every index once, run after run with the same threads; `done` is told by the calling thread alone, in ascending order.
TEST(SearchThreads, ShareEveryLoop) {
  SearchThreads threads(4);
  EXPECT_GE(threads.count(), 1);
  EXPECT_LE(threads.count(), 4);
  for (const std::size_t count : {std::size_t{0}, std::size_t{1}, std::size_t{1000}}) {
    std::vector<std::atomic<int>> times(count);
    std::atomic<bool> known_thread = true;
    std::size_t last = 0;
    bool ascending = true;
    threads.run(
        count, [] { return true; },
        [&](std::size_t i, std::size_t thread) {
          ++times[i];
          if (thread >= static_cast<std::size_t>(threads.count())) known_thread = false;
        },
        [&](std::size_t next) { ascending = ascending && next > last, last = next; });
    for (const std::atomic<int>& time : times) EXPECT_EQ(time, 1);
    EXPECT_TRUE(known_thread && ascending);
  }
}

TEST(SearchThreads, StopWhenTheyShall) {
  SearchThreads threads(2);
  std::atomic<int> done = 0;
  threads.run(
      1000, [&] { return done < 10; }, [&](std::size_t, std::size_t) { ++done; }, [](std::size_t) {});
  EXPECT_LT(done, 10 + threads.count());
}

// The exception of any thread comes back, and the next loop is whole again.
TEST(SearchThreads, AnExceptionEndsTheLoopOnly) {
  SearchThreads threads(4);
  for (int round = 0; round < 3; ++round) {
    const auto work = [](std::size_t i, std::size_t) {
      if (i == 7) throw std::runtime_error("seven");
    };
    EXPECT_THROW(threads.run(
                     1000, [] { return true; }, work, [](std::size_t) {}),
                 std::runtime_error);
    std::atomic<int> done = 0;
    threads.run(
        100, [] { return true; }, [&](std::size_t, std::size_t) { ++done; }, [](std::size_t) {});
    EXPECT_EQ(done, 100);
  }
}

}  // namespace foreshard::search_threads_test
