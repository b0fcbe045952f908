#include "exec/cuda/numa_cpus.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <thread>

#include "tests/cuda/fake_training.h"

namespace foreshard::gpu::near_cpus_test {
namespace {

std::vector<int> allowed() {
  cpu_set_t set;
  sched_getaffinity(0, sizeof set, &set);
  std::vector<int> all;
  for (int cpu = 0; cpu < CPU_SETSIZE; ++cpu)
    if (CPU_ISSET(cpu, &set)) all.push_back(cpu);
  return all;
}

TEST(CpuAffinity, AreReadFromTheAddressOfTheGpu) {
  const std::string root = testing::TempDir() + "near_cpus_" + std::to_string(getpid());
  const std::string device = root + "/sys/bus/pci/devices/0000:1b:00.0";
  std::filesystem::create_directories(device);
  std::ofstream(device + "/local_cpulist") << "0-2,64,96-97\n";
  EXPECT_EQ(numa_cpus("0000:1B:00.0", root), (std::vector<int>{0, 1, 2, 64, 96, 97}));
  std::ofstream(device + "/local_cpulist") << "\n";
  EXPECT_EQ(numa_cpus("0000:1b:00.0", root), std::vector<int>{});
  EXPECT_EQ(numa_cpus("0000:1c:00.0", root), std::vector<int>{});
  std::filesystem::remove_all(root);
}

TEST(CpuAffinity, AreThoseOfTheThreadAndOfThoseThatItStarts) {
  const std::vector<int> before = allowed();
  {
    const CpuAffinity near({before.back(), CPU_SETSIZE - 1});
    EXPECT_EQ(allowed(), std::vector<int>{before.back()});
    std::vector<int> inherited;
    std::thread([&] { inherited = allowed(); }).join();
    EXPECT_EQ(inherited, std::vector<int>{before.back()});
  }
  EXPECT_EQ(allowed(), before);
  const CpuAffinity nowhere({});
  EXPECT_EQ(allowed(), before);
}

// Streams and ranks of a training put their work on the GPU from there, and leave the caller's thread as it was.
TEST(CpuAffinity, FeedTheGpu) {
  const std::vector<int> before = allowed();
  FakeRuntime runtime({.numa_cpus = {before.back()}});
  ExecuteOptions options = on_fake(runtime, 2);
  options.before = [&](RankId, int, int, int) { EXPECT_EQ(allowed(), std::vector<int>{before.back()}); };
  static_cast<void>(run(lowered(tiny_mlp(), in_single({.dp = 2, .batch = {.micro = 4}})), options));
  EXPECT_EQ(runtime.far_calls(), 0);
  EXPECT_EQ(allowed(), before);
}

}  // namespace
}  // namespace foreshard::gpu::near_cpus_test
