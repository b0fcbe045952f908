// A process can simulate as often as it likes: same bits, flat memory, its own signal handlers, in any thread.
#include <gtest/gtest.h>
#include <unistd.h>

#include <csignal>
#include <fstream>
#include <thread>

#include "sim/simulate.h"
#include "tests/core/network_clusters.h"
#include "tests/sim/plans.h"

namespace foreshard::repeat_test {
namespace {

using namespace playing;

std::int64_t resident_bytes() {
  std::ifstream statm("/proc/self/statm");
  std::int64_t size = 0, resident = 0;
  statm >> size >> resident;
  return resident * sysconf(_SC_PAGESIZE);
}

Plan ring_beside_transfers() {
  Line line(16);
  for (int i = 0; i < 10; ++i)
    line.of.issue(line.role, {compute(0, 137 * kUs), collective(0, CollectiveKind::AllReduce, line.all, 10'000'019, 3 * kUs),
                              both(1, line.next(), line.next(-1), 7'000'003, 5 * kUs).takes(0.1), compute(2, 301 * kUs)});
  return line.of.plan();
}

void interrupted(int) {}

TEST(Repeat, AThousandSimulationsAreEqualAndLeaveNothingBehind) {
  const Plan plan = ring_beside_transfers();
  const Cluster cluster = lossless_cluster_of(switched_shape({}), 2, {.nodes_per_leaf = 1, .oversubscription = 3});
  const auto before = std::signal(SIGINT, interrupted);
  std::thread thread([&] {
    const Result first = simulate(plan, cluster);
    EXPECT_GT(first.makespan_s, 0);
    for (int i = 0; i < 20; ++i) simulate(plan, cluster);  // what the allocator keeps
    const std::int64_t then = resident_bytes();
    for (int i = 0; i < 1000; ++i) {
      const Result again = simulate(plan, cluster);
      ASSERT_EQ(again.makespan_s, first.makespan_s) << i;
      ASSERT_EQ(again.trace, first.trace) << i;
    }
    EXPECT_LT(resident_bytes() - then, std::int64_t{50} << 20);
  });
  thread.join();
  EXPECT_EQ(std::signal(SIGINT, before), interrupted);
}

// A run that ended early leaves no trace in the next one.
TEST(Repeat, AfterAFailedRun) {
  const Plan plan = ring_beside_transfers();
  const Cluster cluster = lossless_cluster_of(switched_shape({}), 2);
  const double right = simulate(plan, cluster).makespan_s;
  std::atomic<bool> cancel = false;
  EXPECT_ANY_THROW(simulate(plan, cluster, {.cancel = &cancel, .progress = [&](double) { cancel = true; }}));
  EXPECT_EQ(simulate(plan, cluster).makespan_s, right);
}

}  // namespace
}  // namespace foreshard::repeat_test
