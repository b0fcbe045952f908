// The simulator's clock (before rounding to nanoseconds) against numbers derived on paper: transfers and collectives alone, and
// several on the same links.
#include <gtest/gtest.h>

#include <string>

#include "sim/simulate.h"
#include "tests/core/network_clusters.h"
#include "tests/sim/plans.h"

namespace foreshard::closed_form_test {
namespace {

using namespace playing;

constexpr double kExact = 1e-12;  // relative; 1e-9 is promised
const Folding kFoldings[] = {Folding::None, Folding::Tp, Folding::Full};

void near(double found, double expected, const std::string& what) { EXPECT_NEAR(found, expected, kExact * expected) << what; }

double seconds(const Plan& plan, const Cluster& cluster, Folding folding = Folding::None) {
  return simulate(plan, cluster, {.granularity = Granularity::Op, .folding = folding}).makespan_s;
}

// One GPU and one 25 GB/s NIC per node.
Cluster singles(int nodes) {
  return lossless_cluster_of(switched_shape({.gpus = 1, .nics = 1, .nvlink = 0}), nodes, {.nodes_per_leaf = 1024});
}

TEST(ClosedForm, PointToPoint) {
  for (const std::int64_t bytes : {std::int64_t{1}, std::int64_t{1'000'000}, std::int64_t{350'000'000'000}}) {
    PlanOf of;
    const RoleId a = of.role("a", {}), b = of.role("b", {});
    of.issue(a, {send(0, {1}, bytes, 7 * kUs)});
    of.issue(b, {receive(0, {-1}, bytes, 7 * kUs)});
    const double alone = 7e-6 + static_cast<double>(bytes) / 25e9;  // NICs are narrower than PCIe
    near(seconds(of.plan(), singles(2)), alone, std::to_string(bytes));
  }
}

// Ring: 2(n-1)/n of the bytes over every edge for an all-reduce, (n-1)/n for its halves. Once by its formula (one stream has the
// links to itself) and once as a flow of the engine (an empty collective on another stream of the same group).
TEST(ClosedForm, RingCollectivesAlone) {
  for (const int n : {2, 3, 8, 64, 256, 512})
    for (const auto& [kind, passes] :
         {std::pair{CollectiveKind::AllReduce, 2}, {CollectiveKind::ReduceScatter, 1}, {CollectiveKind::AllGather, 1}})
      for (const bool as_flow : {false, true}) {
        Line line(n);
        line.of.issue(line.role, {collective(0, kind, line.all, 1'000'000'007, 5 * kUs)});
        if (as_flow) line.of.issue(line.role, {collective(1, kind, line.all, 0)});
        const double alone = 5e-6 + passes * (n - 1.0) / n * 1'000'000'007 / 25e9;
        for (const Folding folding : kFoldings)
          near(seconds(line.of.plan(), singles(n), folding), alone, std::to_string(n) + (as_flow ? " flow" : " formula"));
      }
}

// Two GPUs below one PCIe switch send 32 and 64 GB to two below another: its uplink of 32 GB/s is shared, 16 GB/s each. The
// shorter ends at 2 s; the longer then has 32 GB left and all of the uplink: 3 s.
TEST(ClosedForm, TwoFlowsThroughOnePcieSwitch) {
  PlanOf of;
  const RoleId a = of.role("a", {}), b = of.role("b", {}), c = of.role("c", {}), d = of.role("d", {});
  of.issue(a, {send(0, {2}, 32'000'000'000)});
  of.issue(b, {send(0, {2}, 64'000'000'000)});
  of.issue(c, {receive(0, {-2}, 32'000'000'000)});
  of.issue(d, {receive(0, {-2}, 64'000'000'000)});
  const Cluster cluster = lossless_cluster_of(switched_shape({.gpus = 4, .nics = 4, .nvlink = 0}), 1);
  const Result result = simulate(of.plan(), cluster, {.granularity = Granularity::Op});
  EXPECT_EQ(span_of(result, 0, 0, 0).end.value, 2000 * kMs);
  near(result.makespan_s, 3, "the longer flow");
}

// b begins 9 us after a on the same 25 GB/s; both would take T = 40 ms alone. Shares are equal whatever the latencies: a ends at
// 2T - 9 us, b at 2T, counted from a's begin (tests/sim/engine_test.cpp has the derivation).
TEST(ClosedForm, UnequalLatenciesStayFair) {
  PlanOf of;
  const RoleId a = of.role("a", {}), b = of.role("b", {}), c = of.role("c", {}), d = of.role("d", {});
  of.issue(a, {send(0, {2}, 1'000'000'000, kUs)});
  of.issue(b, {send(0, {2}, 1'000'000'000, 10 * kUs)});
  of.issue(c, {receive(0, {-2}, 1'000'000'000, kUs)});
  of.issue(d, {receive(0, {-2}, 1'000'000'000, 10 * kUs)});
  of.plan().placement.explicit_devices = {{0}, {0}, {1}, {1}};
  const Result result = simulate(of.plan(), singles(2), {.granularity = Granularity::Op});
  EXPECT_EQ(span_of(result, 0, 0, 0).end.value, 1 * kUs + 80 * kMs - 9 * kUs);
  near(result.makespan_s, 1e-6 + 80e-3, "b");
}

// Eight GPUs below a switch with 50 GB/s ports; the ring carries 1.75 GB over every edge: 35 ms alone. Other ranks live on the
// same devices and send over edges of the ring.
class RingWithOthers {
 public:
  RingWithOthers() {
    const AxisId axis = of_.axis(DenseKind::Context, 8);
    ring_ = of_.role("ring", {axis});
    of_.issue(ring_, {collective(0, CollectiveKind::AllReduce, of_.group({axis}), 1'000'000'000)});
    for (int i = 0; i < 8; ++i) devices_.push_back({i});
  }
  // A sender on device `edge` and a receiver on the next one.
  int add(int edge, std::int64_t bytes) {
    const RoleId from = of_.role("from", {}), to = of_.role("to", {});
    of_.issue(from, {send(0, {1}, bytes)});
    of_.issue(to, {receive(0, {-1}, bytes)});
    devices_.push_back({edge});
    devices_.push_back({(edge + 1) % 8});
    return static_cast<int>(devices_.size()) - 2;
  }
  void add_ring() {
    const RoleId other = of_.role("other", of_.plan().roles[0].axes);
    of_.issue(other, {collective(0, CollectiveKind::AllReduce, {0}, 1'000'000'000)});
    for (int i = 0; i < 8; ++i) devices_.push_back({i});
  }
  void expect(const std::vector<std::pair<int, double>>& ends) {
    of_.plan().placement.explicit_devices = devices_;
    const Cluster cluster = lossless_cluster_of(switched_shape({.nvlink = 50e9}), 1);
    for (const Folding folding : kFoldings) {
      const Result result = simulate(of_.plan(), cluster, {.granularity = Granularity::Op, .folding = folding});
      for (const auto& [rank, end] : ends)
        EXPECT_NEAR(to_seconds(span_of(result, rank, 0, 0).end).value, end, 0.6e-9) << "rank " << rank;
    }
  }

 private:
  PlanOf of_ = {};
  RoleId ring_ = {};
  std::vector<DeviceId> devices_ = {};
};

TEST(ClosedForm, TwoRingsOnTheSameLinksTakeTwiceAsLong) {
  RingWithOthers ring;
  ring.add_ring();
  ring.expect({{0, 0.070}, {8, 0.070}});
}

// Edge 4 is shared until the ring ends: 1.75 GB at 25 GB/s. Its competitor then has 0.25 GB left at 50 GB/s.
TEST(ClosedForm, RingWithCompetitorsOnTwoEdges) {
  RingWithOthers ring;
  const int short_one = ring.add(0, 1'000'000'000), long_one = ring.add(4, 2'000'000'000);
  ring.expect({{0, 0.070}, {short_one, 0.040}, {long_one, 0.075}});
}

// Four flows on edge 0, 12.5 GB/s each: 1.75 GB take 0.14 s. A bystander on edge 4 has what the slowed ring leaves: 37.5 GB/s.
TEST(ClosedForm, RingBehindThreeCompetitorsAndABystander) {
  RingWithOthers ring;
  for (int i = 0; i < 3; ++i) ring.add(0, 5'000'000'000);
  const int bystander = ring.add(4, 2'000'000'000);
  ring.expect({{0, 0.140}, {bystander, 2e9 / 37.5e9}});
}

// Eight nodes on two leaf switches whose trunks are oversubscribed four times: 4 * 25 / 4 = 25 GB/s for four senders. Every
// node of the left leaf sends 1 GB to its twin on the right: 6.25 GB/s each, 0.16 s.
TEST(ClosedForm, OversubscribedTrunkIsSharedByItsLeaf) {
  PlanOf of;
  const AxisId axis = of.axis(DenseKind::Data, 4);
  const RoleId left = of.role("left", {axis}), right = of.role("right", {axis});
  of.issue(left, {send(0, {1}, 1'000'000'000)});
  of.issue(right, {receive(0, {-1}, 1'000'000'000)});
  Cluster cluster = singles(8);
  cluster.fabric = {.nodes_per_leaf = 4, .oversubscription = 4};
  for (const Folding folding : kFoldings) near(seconds(of.plan(), cluster, folding), 0.16, "trunk");
  cluster.fabric.oversubscription = 1;  // and a trunk as wide as its NICs is no obstacle
  for (const Folding folding : kFoldings) near(seconds(of.plan(), cluster, folding), 0.04, "wide trunk");
}

}  // namespace
}  // namespace foreshard::closed_form_test
