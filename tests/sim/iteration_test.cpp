// Plans of one rank per role on both clocks, against times derived on paper. GPUs of a node share one NIC.
#include <gtest/gtest.h>

#include <random>

#include "core/base/error.h"
#include "replay/light_clock.h"
#include "sim/simulate.h"
#include "tests/core/network_clusters.h"
#include "tests/sim/plans.h"

namespace foreshard::iteration_test {
namespace {

using namespace playing;

constexpr std::int64_t kMsOfBytes = 100'000'000;  // of NVLink at 100 GB/s; a NIC at 25 GB/s takes 4 ms

Cluster nodes(int count) {
  return lossless_cluster_of(
      switched_shape({.gpus = 2, .per_switch = 2, .nics = 1, .nvlink = 100e9, .pcie = 1e12, .nic = 25e9}), count);
}

double seconds_on_light_clock(const Plan& plan, const Cluster& cluster) {
  player::LightClock clock;
  return replay(plan, cluster, clock, {.granularity = Granularity::Stage}).makespan_s;
}

void expect_played(Plan& plan, int roles, double milliseconds) {
  const Cluster cluster = nodes((roles + 1) / 2);
  EXPECT_NEAR(seconds_on_light_clock(plan, cluster), milliseconds * 1e-3, 1e-12);
  EXPECT_NEAR(simulate(plan, cluster, {.granularity = Granularity::Op}).makespan_s, milliseconds * 1e-3, 1e-12);
}

// Rank 0 computes for 1 ms and sends for 2 ms; the kernel of the receive takes half of rank 1's compute units: of its 4 ms one is done
// at 1, another one at 3, and the rest at 5.
TEST(Iteration, AReceiveSlowsTheComputesBesideIt) {
  PlanOf of;
  const RoleId a = of.role("a", {}), b = of.role("b", {});
  of.issue(a, {compute(0, kMs), send(1, {1}, 2 * kMsOfBytes).after({0})});
  of.issue(b, {receive(1, {-1}, 2 * kMsOfBytes).takes(0.5), compute(0, 4 * kMs)});
  expect_played(of.plan(), 2, 5);
}

// The sender counts 1 ms before the first byte and the bytes as they are, the receiver 2 ms and twice the bytes: 2 + 2.
TEST(Iteration, ATransferTakesWhatTheSlowerEndSays) {
  PlanOf of;
  const RoleId a = of.role("a", {}), b = of.role("b", {});
  of.issue(a, {send(0, {1}, kMsOfBytes, kMs)});
  of.issue(b, {receive(0, {-1}, kMsOfBytes, 2 * kMs).wire(2)});
  expect_played(of.plan(), 2, 4);
}

// Ranks 0 and 1 send 100 MB each over their node's NIC, 1 a ms later: 4 ms alone, 25 MB done in the first one. Then they share it until the
// first is through at 1 + 6 = 7 with 75 MB of the other; its last 25 take a ms more.
TEST(Iteration, TransfersOfDifferentRanksShareTheirNic) {
  PlanOf of;
  const RoleId a = of.role("a", {}), b = of.role("b", {}), c = of.role("c", {}), d = of.role("d", {});
  of.issue(a, {send(0, {2}, kMsOfBytes)});
  of.issue(b, {compute(0, kMs), send(0, {2}, kMsOfBytes)});
  of.issue(c, {receive(0, {-2}, kMsOfBytes)});
  of.issue(d, {receive(0, {-2}, kMsOfBytes)});
  expect_played(of.plan(), 4, 8);
}

// A sum of three roles begins when the last is there, at 3 ms, and holds all up for its 2 ms.
TEST(Iteration, ACollectiveOfRolesWaitsForTheLast) {
  PlanOf of;
  const RoleId a = of.role("a", {}), b = of.role("b", {}), c = of.role("c", {});
  const GroupId all = of.group({}, {a, b, c});
  for (const RoleId role : {a, b, c})
    of.issue(role, {compute(0, (1 + role.value) * kMs), collective(0, CollectiveKind::AllReduce, all, 0, 2 * kMs)});
  expect_played(of.plan(), 3, 5);
}

TEST(Iteration, RanksThatWaitForEachOtherAreAnError) {
  PlanOf of;
  const RoleId a = of.role("a", {}), b = of.role("b", {});
  of.issue(a, {receive(0, {1}, 1), send(0, {1}, 1)});
  of.issue(b, {receive(0, {-1}, 1), send(0, {-1}, 1)});
  EXPECT_THROW(seconds_on_light_clock(of.plan(), nodes(1)), Error);
}

// Two to four ranks in nodes of two, random computes, kernels, events and transfers to any other rank; what meets is issued at the same place
// of one order, so nobody waits for ever. Seed 23.
TEST(Iteration, BothClocksAgreeOnRandomPlans) {
  std::mt19937 random(23);
  const auto below = [&](int n) { return std::uniform_int_distribution<int>(0, n - 1)(random); };
  for (int round = 0; round < 200; ++round) {
    PlanOf of;
    const int ranks = 2 + below(3);
    std::vector<RoleId> roles;
    for (int r = 0; r < ranks; ++r) roles.push_back(of.role("r" + std::to_string(r), {}, 3, 2));
    const GroupId pair = of.group({}, {roles[0], roles[1]}), own = of.group({});
    std::vector<std::vector<Item>> open(roles.size());
    const auto add = [&](int r, Item item) {
      std::vector<Item>& items = open[static_cast<std::size_t>(r)];
      if (below(4) == 0 && !items.empty()) of.issue({r}, std::exchange(items, {}));
      for (std::size_t i = 0; i < items.size(); ++i)
        if (below(6) == 0 && items[i].what.stream != item.what.stream) item.what.after.push_back(static_cast<std::int32_t>(i));
      if (below(4) == 0) item.what.waits.push_back({{below(2)}, {}});
      if (below(4) == 0) item.what.records.push_back({{below(2)}, {}});
      items.push_back(std::move(item));
    };
    const auto share = [&] { return 0.1 * below(5); };
    for (int op = 40; op-- > 0;) {
      const int r = below(ranks), other = (r + 1 + below(ranks - 1)) % ranks;
      const std::int64_t bytes = 1'000'000LL * (1 + below(100)), setup = kUs * below(50);
      switch (below(4)) {
        case 0:
          add(r, send(below(3), {other - r}, bytes, setup).takes(share()).wire(1 + 0.5 * below(2)));
          add(other, receive(below(3), {r - other}, bytes, setup).takes(share()));
          break;
        case 1:
          for (const int member : {0, 1})
            add(member, collective(below(3), CollectiveKind::AllReduce, pair, bytes, setup).takes(share()));
          break;
        case 2: add(r, collective(below(3), CollectiveKind::AllReduce, own, 0, kUs * below(3000)).takes(share())); break;
        default: add(r, compute(0, kUs * below(3000))); break;
      }
    }
    for (int r = 0; r < ranks; ++r)
      if (!open[static_cast<std::size_t>(r)].empty()) of.issue({r}, std::move(open[static_cast<std::size_t>(r)]));
    const Cluster cluster = nodes(2);
    const double simulated = simulate(of.plan(), cluster, {.granularity = Granularity::Op}).makespan_s;
    EXPECT_NEAR(seconds_on_light_clock(of.plan(), cluster), simulated, 1e-9 * simulated) << round;
  }
}

// Rank 0 computes for 1 ms and sends for 2; rank 1 computes for 4 ms. When that waits for the receive of the same run, one run takes
// 3 + 4 = 7 ms, and the second transfer, from 3 to 5, hides behind the first compute: two take 7 + 4 = 11. When it waits for the receive of
// the run before, one run takes 4 ms and two take 8.
TEST(Iteration, RunsFollowEachOtherWithoutABarrier) {
  for (const bool same_run : {false, true}) {
    PlanOf of;
    const RoleId a = of.role("a", {}, 4), b = of.role("b", {}, 4, 1);
    of.issue(a, {compute(0, kMs), send(1, {1}, 2 * kMsOfBytes).after({0})});
    if (same_run)
      of.issue(b, {receive(1, {-1}, 2 * kMsOfBytes), compute(0, 4 * kMs).after({0})});
    else
      of.issue(b, {compute(0, 4 * kMs).waits({0}), receive(1, {-1}, 2 * kMsOfBytes).records({0})});
    for (const int runs : {1, 2}) {
      player::LightClock clock;
      const Result played = replay(of.plan(), nodes(1), clock, {.granularity = Granularity::Op, .memory = false, .runs = runs});
      EXPECT_NEAR(played.makespan_s, (same_run ? 3 + 4 * runs : 4 * runs) * 1e-3, 1e-12) << same_run << runs;
      EXPECT_EQ(played.trace.spans.size(), 4u * static_cast<std::size_t>(runs));
    }
  }
}

}  // namespace
}  // namespace foreshard::iteration_test
