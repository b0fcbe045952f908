// Whatever stands in a plan, a cluster or the options: an Error that names it, and never an abort inside SimGrid.
#include "replay/validate.h"

#include <gtest/gtest.h>

#include <cmath>
#include <functional>
#include <limits>

#include "core/base/error.h"
#include "tests/core/network_clusters.h"
#include "tests/sim/plans.h"

namespace foreshard::validate_test {
namespace {

using namespace playing;

constexpr double kNan = std::numeric_limits<double>::quiet_NaN(), kInfinity = std::numeric_limits<double>::infinity();

// Everything that can be wrong is in it: two roles, an exchange, a collective, a copy, events with slots as arguments.
Plan sound() {
  PlanOf of;
  const AxisId dp = of.axis(DenseKind::Data, 2);
  const RoleId a = of.role("a", {dp}, 4, 1, 2), b = of.role("b", {dp}, 4, 1, 2);
  const GroupId all = of.group({dp}, {a, b});
  const int device = of.buffer(a, Space::Device).value, pinned = of.buffer(a, Space::PinnedHost).value;
  const SegmentId first =
      of.segment("first",
                 {compute(0, kMs).records({0}, Slot{ParamId{0}}), send(1, {1}, 1000, kUs).after({0}),
                  collective(2, CollectiveKind::AllReduce, all, 1000).takes(0.1), copy(3, device, pinned, 1000)},
                 1);
  const SegmentId second =
      of.segment("second", {receive(1, {-1}, 1000, kUs).waits({0}), collective(2, CollectiveKind::AllReduce, all, 1000)});
  of.issue(a, first, {1});
  of.issue(b, second);
  return of.plan();
}
Cluster cluster() { return lossless_cluster_of(switched_shape({}), 2); }

std::string message(const Plan& plan, const Cluster& where, const SimulateOptions& options = {}) {
  try {
    simulate(plan, where, options);
    return "";
  } catch (const Error& error) {
    return error.what();
  }
}

struct Mistake {
  const char* names;  // part of the message
  std::function<void(Plan&)> make;
};

Instruction& instruction(Plan& plan, int segment, int i) {
  return plan.segments[static_cast<std::size_t>(segment)].instructions[static_cast<std::size_t>(i)];
}
Cost& cost(Plan& plan, int segment, int i) {
  return plan.costs[0].by_segment[static_cast<std::size_t>(segment)][static_cast<std::size_t>(i)];
}

const Mistake kMistakes[] = {
    {"axes[0].size", [](Plan& p) { p.axes[0].size = 0; }},
    {"roles", [](Plan& p) { p.roles.clear(); }},
    {"roles[0].axes", [](Plan& p) { p.roles[0].axes = {{7}}; }},
    {"roles[0].axes",
     [](Plan& p) {
       p.roles[0].axes = {{0}, {0}};
     }},
    {"ranks", [](Plan& p) { p.axes[0].size = std::numeric_limits<int>::max(); }},
    {"groups[0].roles", [](Plan& p) { p.groups[0].roles[1] = {9}; }},
    {"groups[0].over", [](Plan& p) { p.groups[0].over = {{-1}}; }},
    {".group", [](Plan& p) { std::get<Collective>(instruction(p, 0, 2).what).group = {4}; }},
    {".bytes", [](Plan& p) { std::get<Collective>(instruction(p, 0, 2).what).bytes = {-1}; }},
    {".bytes",
     [](Plan& p) { std::get<Exchange>(instruction(p, 0, 1).what).bytes = {std::numeric_limits<std::int64_t>::max()}; }},
    {"an exchange with nobody", [](Plan& p) { std::get<Exchange>(instruction(p, 0, 1).what).to = {}; }},
    {".axis",
     [](Plan& p) {
       std::get<Exchange>(instruction(p, 0, 1).what).to = Peer{1, {AxisId{5}}, 1};
     }},
    {".after", [](Plan& p) { instruction(p, 0, 0).after = {0}; }},
    {".after", [](Plan& p) { instruction(p, 0, 1).after = {-1}; }},
    {".stream", [](Plan& p) { instruction(p, 0, 1).stream = {4}; }},
    {".event", [](Plan& p) { instruction(p, 1, 0).waits[0].event = {1}; }},
    {".slot", [](Plan& p) { instruction(p, 1, 0).waits[0].slot = {2}; }},
    {".slot", [](Plan& p) { instruction(p, 0, 0).records[0].slot = {ParamId{1}}; }},
    {".args[0]", [](Plan& p) { p.roles[0].actions[0].args = {2}; }},
    {".args", [](Plan& p) { p.roles[0].actions[0].args = {}; }},
    {".segment", [](Plan& p) { p.roles[0].actions[0].segment = {2}; }},
    {"without source", [](Plan& p) { instruction(p, 0, 3).reads.clear(); }},
    {".buffer", [](Plan& p) { instruction(p, 0, 3).writes[0].buffer = {8}; }},
    {"device_kind", [](Plan& p) { p.roles[1].device_kind = "Y"; }},
    {"costs of 'X'", [](Plan& p) { p.costs[0].by_segment.pop_back(); }},
    {"costs of 'X', segment[0]", [](Plan& p) { p.costs[0].by_segment[0].pop_back(); }},
    {".busy", [](Plan& p) { cost(p, 0, 0).busy = {-1}; }},
    {".busy", [](Plan& p) { cost(p, 0, 0).busy = {std::numeric_limits<std::int64_t>::max()}; }},
    {".wire_factor", [](Plan& p) { cost(p, 0, 1).wire_factor = kNan; }},
    {".wire_factor", [](Plan& p) { cost(p, 0, 1).wire_factor = -1; }},
    {".wire_factor", [](Plan& p) { cost(p, 0, 1).wire_factor = kInfinity; }},
    {".wire_factor", [](Plan& p) { cost(p, 0, 1).wire_factor = 1e12; }},
    {".sm_share", [](Plan& p) { cost(p, 0, 2).sm_share = 1.5; }},
    {".sm_share", [](Plan& p) { cost(p, 0, 2).sm_share = kNan; }},
    {".others", [](Plan& p) { p.segments[0].instructions[0].what = Compute{.op = ops::GroupedMatMul{.others = 1.5}}; }},
    {".others", [](Plan& p) { p.segments[0].instructions[0].what = Compute{.op = ops::GroupedMatMul{.others = kNan}}; }},
    {"device 99",
     [](Plan& p) {
       p.placement.explicit_devices = {{0}, {99}};
     }},
    {"never receives from it",
     [](Plan& p) {
       std::get<Exchange>(instruction(p, 1, 0).what).from = Peer{-1, {AxisId{0}}, 1};
     }},
    {"sends to role 2", [](Plan& p) { std::get<Exchange>(instruction(p, 0, 1).what).to = Peer{2}; }},
    {"never sends to it", [](Plan& p) { instruction(p, 0, 1).what = Mark{}; }},
    {"never takes part", [](Plan& p) { instruction(p, 1, 1).what = Mark{}; }},
};

TEST(Validate, EveryMistakeIsNamed) {
  ASSERT_EQ(message(sound(), cluster()), "");
  for (const Mistake& mistake : kMistakes) {
    Plan plan = sound();
    mistake.make(plan);
    const std::string text = message(plan, cluster());
    EXPECT_NE(text.find(mistake.names), std::string::npos) << "expected " << mistake.names << ", got: " << text;
  }
}

TEST(Validate, RanksNeedDevicesOfTheirKind) {
  EXPECT_NE(message(sound(), lossless_cluster_of(switched_shape({.gpus = 2, .nics = 2}), 1)).find("device 2"),
            std::string::npos);
  Cluster other = cluster();
  other.gpus[0].name = other.nodes[0].shape.gpu = "Y";
  EXPECT_NE(message(sound(), other).find("kind 'Y'"), std::string::npos);
}

TEST(Validate, LinksNeedABandwidth) {
  for (const double bandwidth : {0.0, -1.0, kNan, kInfinity}) {
    Cluster broken = cluster();
    for (NodeLink& link : broken.nodes[0].shape.links) link.bandwidth = {bandwidth};
    EXPECT_NE(message(sound(), broken), "") << bandwidth;
  }
}

TEST(Validate, Stragglers) {
  EXPECT_NE(message(sound(), cluster(), {.stragglers = {{{4}, 2}}}).find("rank 4"), std::string::npos);
  for (const double slowdown : {0.0, -1.0, kNan, kInfinity})
    EXPECT_NE(message(sound(), cluster(), {.stragglers = {{{1}, slowdown}}}).find("slowdown"), std::string::npos);
}

// Extremes that are allowed: 52 days of compute, 100 TB in one transfer, nothing to do at all.
TEST(Validate, LargeAndEmptyPlansPlay) {
  Plan plan = sound();
  cost(plan, 0, 0).busy = {std::int64_t{1} << 52};
  std::get<Exchange>(instruction(plan, 0, 1).what).bytes = {100'000'000'000'000};
  std::get<Exchange>(instruction(plan, 1, 0).what).bytes = {100'000'000'000'000};
  EXPECT_EQ(message(plan, cluster()), "");
  plan = sound();
  for (Role& role : plan.roles) role.actions.clear();
  const Result nothing = simulate(plan, cluster());
  EXPECT_EQ(nothing.trace.makespan.value, 0);
  EXPECT_TRUE(nothing.trace.spans.empty());
}

}  // namespace
}  // namespace foreshard::validate_test
