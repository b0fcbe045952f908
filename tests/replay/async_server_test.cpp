// Asynchronous parameter servers: how old the parameters are that a gradient was made from, and what the server's card lets through.
#include "replay/async_server.h"

#include <gtest/gtest.h>

#include <numeric>

namespace foreshard::async_server_test {
namespace {

AsyncServer equal_workers(int n) {
  return {.workers = n, .compute = {0.1}, .jitter = 0.2, .pull = {0.2e-3}, .push = {0.2e-3}, .update = {0.1e-3}, .seed = 3};
}

// While one worker makes a step each of the n - 1 others makes one, too.
TEST(AsyncServer, MeanStalenessOfEqualWorkersIsTheirNumberLessOne) {
  for (const int n : {1, 2, 4, 8, 16, 32})
    for (const double jitter : {0.0, 0.2, 0.5}) {
      AsyncServer server = equal_workers(n);
      server.jitter = jitter;
      const AsyncRun run = run_async(server, 4000);
      EXPECT_NEAR(run.staleness, n - 1, 0.05 * (n - 1)) << n << " " << jitter;
      EXPECT_EQ(std::accumulate(run.by_staleness.begin(), run.by_staleness.end(), std::int64_t{0}), 4000);
    }
}

// One worker of four at half the speed: in one of its steps each other makes two, so it is 6 late; for the others half of its updates come
// in a step: 2 + 1/2.
TEST(AsyncServer, ASlowWorkerIsLater) {
  AsyncServer server = equal_workers(4);
  server.speeds = {0.5, 1, 1, 1};
  const AsyncRun run = run_async(server, 8000);
  EXPECT_NEAR(run.of_worker[0], 6, 0.3);
  for (int w = 1; w < 4; ++w) EXPECT_NEAR(run.of_worker[static_cast<std::size_t>(w)], 2.5, 0.15);
}

// Nobody waits: n workers of a step of 0.1005 s. When gradients of n workers fill the card its rate is all there is.
TEST(AsyncServer, TheCardIsTheLimit) {
  AsyncServer server = equal_workers(8);
  server.jitter = 0;
  EXPECT_NEAR(8000 / run_async(server, 8000).time.value, 8 / 0.1005, 0.01 * 80);
  server.push = server.pull = {0.025};  // four a step
  const AsyncRun full = run_async(server, 8000);
  EXPECT_NEAR(8000 / full.time.value, 40, 0.5);
}

TEST(AsyncServer, TheSameSeedIsTheSameRun) {
  const AsyncRun a = run_async(equal_workers(6), 1000), b = run_async(equal_workers(6), 1000);
  EXPECT_EQ(a.by_staleness, b.by_staleness);
  EXPECT_EQ(a.time.value, b.time.value);
  AsyncServer other = equal_workers(6);
  other.seed = 4;
  EXPECT_NE(run_async(other, 1000).time.value, a.time.value);
}

}  // namespace
}  // namespace foreshard::async_server_test
