// The queue of commands of a stream: in order, of a fixed size, ended by close or by a stop.
#include "exec/cuda/command_ring.h"

#include <gtest/gtest.h>

#include <thread>

namespace foreshard::gpu {

// Three places, filled and emptied in every phase of the ring.
TEST(CommandRing, CommandsComeOutInOrder) {
  const Stop stop;
  CommandRing ring;
  ring.set_capacity(3);
  int next = 0, expected = 0;
  for (int phase = 0; phase < 7; ++phase) {
    while (ring.add({.index = next})) ++next;
    EXPECT_EQ(next - expected, 3);  // full
    for (int i = 0; i < 1 + phase % 3; ++i) EXPECT_EQ(ring.take(stop)->index, expected++);
  }
}

// What was added before the close is still taken.
TEST(CommandRing, EndsWhenClosedAndEmpty) {
  const Stop stop;
  CommandRing ring;
  ring.set_capacity(2);
  ASSERT_TRUE(ring.add({.index = 7}));
  ring.close();
  EXPECT_EQ(ring.take(stop)->index, 7);
  EXPECT_FALSE(ring.take(stop));
}

TEST(CommandRing, AStopEndsAWaitingThread) {
  Stop stop;
  CommandRing ring;
  ring.set_capacity(1);
  std::thread later([&] { stop.raise("test"); });
  EXPECT_THROW(ring.take(stop), Stopped);
  later.join();
}

TEST(CommandRing, ManyCommandsBetweenTwoThreads) {
  const Stop stop;
  CommandRing ring;
  ring.set_capacity(4);
  std::thread adds([&] {
    for (int i = 0; i < 2000;) i += ring.add({.index = i}) ? 1 : (std::this_thread::yield(), 0);
    ring.close();
  });
  int taken = 0;
  while (const std::optional<Command> command = ring.take(stop)) ASSERT_EQ(command->index, taken++);
  adds.join();
  EXPECT_EQ(taken, 2000);
}

}  // namespace foreshard::gpu
