// Times of GPU events on the host's clock, by a base that moves with the runs.
#include "exec/cuda/run_clock.h"

#include <gtest/gtest.h>

#include "exec/cuda/gpu_task.h"
#include "tests/cuda/fake_runtime.h"

namespace foreshard::gpu {

// The base is recorded when the stream is empty, so it has the host's time between two readings; later events come after it.
TEST(RunClock, TimesAreOnTheHostsClock) {
  FakeRuntime runtime({.timed_event = 100});
  RunClock clock(runtime, 0);
  Stream* stream = runtime.open_stream(false);
  const std::int64_t before = RunClock::now();
  clock.start(stream);
  const std::int64_t after = RunClock::now();
  Event *a = clock.take(), *b = clock.take();
  runtime.record(a, stream), runtime.record(b, stream);
  runtime.synchronize(stream);
  const std::int64_t time_a = clock.time_of(a), between = runtime.nanoseconds(a, b);
  EXPECT_GE(time_a, before);
  EXPECT_LE(time_a, after + 1000);
  EXPECT_EQ(clock.time_of(b), time_a + between);
  // With another base, times stay what they were.
  clock.rebase(a, time_a, 5);
  EXPECT_EQ(clock.time_of(a), time_a);
  EXPECT_EQ(clock.time_of(b), time_a + between);
  // Run 5 has its base: the event goes back, the base stays.
  clock.rebase(b, 12345, 5);
  Event* again = clock.take();
  EXPECT_EQ(again, b);
  runtime.record(again, stream);
  runtime.synchronize(stream);
  EXPECT_GE(clock.time_of(again), time_a);
  clock.give(again);
  EXPECT_EQ(clock.timing(), 0);
  runtime.close_stream(stream);
}

// A task tells that it has met the others by recording the event that it is given, or not at all.
TEST(OnStream, MeetingsAreRecordedWhereTheRunIsTimed) {
  FakeRuntime runtime;
  Stream* stream = runtime.open_stream(false);
  Event* met = runtime.make_event(false);
  OnStream timed{runtime, stream, nullptr, nullptr, met}, untimed{runtime, stream, nullptr, nullptr, nullptr};
  timed.tell_met(), untimed.tell_met();
  EXPECT_TRUE(timed.has_met);
  EXPECT_FALSE(untimed.has_met);
  runtime.synchronize(stream);
  EXPECT_TRUE(runtime.done(met));
  runtime.drop_event(met), runtime.close_stream(stream);
}

TEST(YieldUnlessStopped, ThrowsOnlyAfterAStop) {
  Stop stop;
  EXPECT_NO_THROW(yield_unless_stopped(stop));
  stop.raise("test");
  EXPECT_THROW(yield_unless_stopped(stop), Stopped);
}

}  // namespace foreshard::gpu
