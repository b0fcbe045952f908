// The clock of spans: nanoseconds of the steady clock.
#include "exec/base/steady_now.h"

#include <gtest/gtest.h>

#include <thread>

namespace foreshard {

// A reading lies between two readings of the standard's clock, in nanoseconds.
TEST(SteadyNow, IsTheSteadyClockInNanoseconds) {
  const auto nanoseconds = [] { return std::chrono::nanoseconds(std::chrono::steady_clock::now().time_since_epoch()).count(); };
  const std::int64_t before = nanoseconds(), now = steady_now(), after = nanoseconds();
  EXPECT_LE(before, now);
  EXPECT_LE(now, after);
}

TEST(SteadyNow, CountsASleep) {
  const std::int64_t before = steady_now();
  std::this_thread::sleep_for(std::chrono::milliseconds(2));
  EXPECT_GE(steady_now() - before, 2'000'000);
}

}  // namespace foreshard
