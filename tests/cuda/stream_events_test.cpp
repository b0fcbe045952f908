// Records of the plan's events: numbered in issue order, waited for by number.
#include "exec/cuda/stream_events.h"

#include <gtest/gtest.h>

#include <thread>

#include "tests/cuda/fake_runtime.h"

namespace foreshard::gpu::stream_events_test {
namespace {

struct StreamEventsTest : testing::Test {
  FakeRuntime runtime;
  Stop stop;
  EventPool pool{runtime, 0, false};
  StreamEvents events{runtime, stop};
  Stream *first = runtime.open_stream(false), *second = runtime.open_stream(false);

  StreamEventsTest() { events.open(2, pool); }
  ~StreamEventsTest() override {
    runtime.synchronize(first), runtime.synchronize(second);
    runtime.close_stream(first), runtime.close_stream(second);
  }
};

}  // namespace

TEST_F(StreamEventsTest, RecordsAreNumberedPerEvent) {
  EXPECT_EQ(events.last_record(0), 0U);
  EXPECT_EQ(events.next_record(0), 1U);
  EXPECT_EQ(events.next_record(0), 2U);
  EXPECT_EQ(events.next_record(1), 1U);
  EXPECT_EQ(events.last_record(0), 2U);
}

// A wait for a record that is not yet enqueued blocks its thread until it is; one for an earlier record does not.
TEST_F(StreamEventsTest, AWaitBlocksUntilItsRecordIsEnqueued) {
  events.record(0, 1, first);
  events.wait(0, 1, second);
  std::atomic<bool> passed = false;
  std::thread waits([&] {
    events.wait(0, 2, second);
    passed = true;
  });
  std::this_thread::sleep_for(std::chrono::milliseconds(20));
  EXPECT_FALSE(passed);
  events.record(0, 2, first);
  waits.join();
  EXPECT_TRUE(passed);
}

TEST_F(StreamEventsTest, AStopEndsAWait) {
  std::thread later([&] { stop.raise("test"); });
  EXPECT_THROW(events.wait(1, 1, second), Stopped);
  later.join();
}

// The second stream's copy comes after the first one's, whatever the order in which queues advance: the fake finds no conflict. Without
// the wait it does.
TEST(StreamEvents, OrderStreams) {
  for (const bool waited : {true, false}) {
    bool conflict = false;
    for (std::uint64_t seed = 1; seed < 8; ++seed) {
      FakeRuntime runtime({.seed = seed});
      const Stop stop;
      EventPool pool(runtime, 0, false);
      StreamEvents events(runtime, stop);
      events.open(1, pool);
      Stream *first = runtime.open_stream(false), *second = runtime.open_stream(false);
      std::byte* memory = runtime.allocate(Space::Device, {64});
      runtime.synchronize(runtime.legacy_stream());
      runtime.copy(memory + 16, memory, {16}, first);
      events.record(0, events.next_record(0), first);
      if (waited) events.wait(0, events.last_record(0), second);
      runtime.copy(memory + 32, memory + 16, {16}, second);
      runtime.synchronize(first), runtime.synchronize(second);
      conflict = conflict || !runtime.conflicts().empty();
      runtime.release(Space::Device, memory);
      runtime.close_stream(first), runtime.close_stream(second);
    }
    EXPECT_EQ(conflict, !waited);
  }
}

}  // namespace foreshard::gpu::stream_events_test
