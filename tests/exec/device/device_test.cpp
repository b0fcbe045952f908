// What every device shares: arguments of later runs, and access to arenas in host memory.
#include "exec/device/device.h"

#include <gtest/gtest.h>

#include "exec/host/host_device.h"

namespace foreshard {

// A run trains on 16 samples and updates twice. Run 3 begins after 48 samples and 6 updates: its first step is number 7.
TEST(Device, ArgumentsOfALaterRun) {
  const OpArguments first{.first_sample = 5, .samples = 2, .samples_of_step = 16, .step = 1, .updates_of_run = 2};
  const OpArguments later = in_run(first, 3);
  EXPECT_EQ(later.first_sample, 5 + 48);
  EXPECT_EQ(later.step, 7);
  EXPECT_EQ(later.samples, 2);
  EXPECT_EQ(in_run(first, 0).first_sample, 5);
  EXPECT_EQ(in_run(first, 0).step, 1);
}

// Long trainings: 4 billion steps do not overflow 32 bits.
TEST(Device, ArgumentsOfManyRuns) { EXPECT_EQ(in_run({.updates_of_run = 4}, 1 << 30).step, (std::int64_t{1} << 32) + 1); }

TEST(Device, ArenasInHostMemoryAreReadWrittenAndFilled) {
  Stop stop;
  HostDevice device(stop, nullptr);
  std::byte* arena = device.arena(Space::Device, {64});
  EXPECT_EQ(reinterpret_cast<std::uintptr_t>(arena) % 4096, 0U);
  std::vector<std::byte> out(64, std::byte{1});
  device.read(out.data(), arena, {64});
  EXPECT_EQ(out, std::vector<std::byte>(64));  // zeroed
  device.fill(arena + 8, std::byte{7}, {4});
  const std::vector<std::byte> in = {std::byte{1}, std::byte{2}};
  device.write(arena + 9, in.data(), {2});
  device.read(out.data(), arena + 7, {6});
  out.resize(6);
  EXPECT_EQ(out, (std::vector<std::byte>{std::byte{0}, std::byte{7}, std::byte{1}, std::byte{2}, std::byte{7}, std::byte{0}}));
}

}  // namespace foreshard
