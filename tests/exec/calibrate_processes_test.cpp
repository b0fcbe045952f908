#include "exec/calibrate_processes.h"

#include <gtest/gtest.h>

#include <cmath>

#include "tests/exec/processes.h"

namespace foreshard {
namespace {

// nccl-tests: an all-reduce of 8 ranks has 2 * 7 / 8 = 1.75 times its algorithm bandwidth on the bus, an all-gather 0.875, a broadcast 1 times.
TEST(CollectiveMeasure, BandwidthsAreThoseOfNcclTests) {
  CollectiveMeasure at{.kind = CollectiveKind::AllReduce, .ranks = 8, .bytes = {1'000'000}, .time = {1e-3}};
  EXPECT_DOUBLE_EQ(at.algorithm_bandwidth().value, 1e9);
  EXPECT_DOUBLE_EQ(at.bus_bandwidth().value, 1.75e9);
  at.kind = CollectiveKind::AllGather;
  EXPECT_DOUBLE_EQ(at.bus_bandwidth().value, 0.875e9);
  at.kind = CollectiveKind::Broadcast;
  EXPECT_DOUBLE_EQ(at.bus_bandwidth().value, 1e9);
}

// Times made of a link of 10 us and 2 GB/s over 2 and 4 ranks give it back: t = 2 (n - 1) (10 us + bytes / n / 2 GB/s).
TEST(CollectiveMeasure, TheLinkIsFitted) {
  std::vector<CollectiveMeasure> measures;
  for (const int n : {2, 4})
    for (std::int64_t bytes = 4096; bytes <= 1 << 24; bytes *= 4)
      measures.push_back(
          {CollectiveKind::AllReduce, n, {bytes}, {2.0 * (n - 1) * (10e-6 + static_cast<double>(bytes) / n / 2e9)}});
  measures.push_back({CollectiveKind::AllGather, 2, {4096}, {1}});  // not of the fit
  MachineProfile profile{.all_reduces = {{9, {9}, {9}}}};
  take_collectives(profile, measures);
  EXPECT_EQ(profile.all_reduces.size(), measures.size() - 1);
  EXPECT_NEAR(profile.link_latency.value, 10e-6, 1e-12);
  EXPECT_NEAR(profile.link_bandwidth.value, 2e9, 1);
}

// Three processes: groups of 2 and 3, five kinds, 4 and 16 KiB; process 0 alone has the answers.
TEST(CollectiveMeasure, EveryKindGroupAndSizeIsMeasured) {
  in_processes(3, 3, [](ProcessMesh& mesh) {
    const std::vector<CollectiveMeasure> measures = measure_collectives(mesh, {16384});
    EXPECT_EQ(measures.size(), mesh.process() == 0 ? 20U : 0U);
    for (const CollectiveMeasure& at : measures) {
      EXPECT_GT(at.time.value, 0);
      EXPECT_TRUE(at.ranks == 2 || at.ranks == 3);
      EXPECT_EQ(at.bytes.value % (4 * at.ranks), 0);
    }
  });
}

}  // namespace
}  // namespace foreshard
