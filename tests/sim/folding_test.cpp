// Folding: identical ranks become one representative without a trace of it in the times, with real contention in the fabric.
#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <tuple>

#include "core/network/network.h"
#include "core/plan/ranks.h"
#include "replay/flow_paths.h"
#include "replay/flows.h"
#include "replay/light_clock.h"
#include "replay/patterns.h"
#include "replay/player.h"
#include "replay/player_input.h"
#include "replay/quotient.h"
#include "sim/simulate.h"
#include "tests/core/network_clusters.h"
#include "tests/sim/plans.h"

namespace foreshard::folding_test {
namespace {

using namespace playing;

// A training step in small: tp ranks in a node, pp stages, dp replicas; per stage and micro-batch forward and backward with
// tensor-parallel all-reduces, transfers to the neighbours on streams of their own, and a gradient all-reduce per stage that
// begins with the last backward. Streams: 0 compute, 1 send, 2 receive, 3 gradients.
Plan training(int tp, int pp, int dp, int microbatches) {
  PlanOf of;
  const AxisId t = of.axis(DenseKind::Tensor, tp), d = of.axis(DenseKind::Data, dp);
  std::vector<RoleId> roles;
  for (int s = 0; s < pp; ++s) roles.push_back(of.role("stage" + std::to_string(s), {d, t}, 4, 2));
  const GroupId tensor = of.group({t}), data = of.group({d});
  of.plan().placement.order = {t, d, Placement::kRole};
  const auto cell = [&](int stage, bool forward, bool last) {
    const int from = forward ? -1 : 1, tag = forward ? stage : stage - 1;
    std::vector<Item> items;
    const auto exists = [&](int shift) { return stage + shift >= 0 && stage + shift < pp; };
    if (exists(from)) items.push_back(receive(2, {from}, 40'000'000, 6 * kUs, forward ? "f" : "b"));
    Item first = compute(0, (forward ? 400 : 800) * kUs).layer(0);
    if (exists(from)) first.what.after = {0};
    items.push_back(std::move(first));
    items.push_back(compute(0, 100 * kUs).layer(0));
    items.push_back(collective(0, CollectiveKind::AllReduce, tensor, 30'000'000, 20 * kUs).layer(0));
    items.push_back(compute(0, 250 * kUs).layer(1));
    items.push_back(compute(0, (50 + tag) * kUs).layer(1));
    const int done = static_cast<int>(items.size()) - 1;
    if (exists(-from)) items.push_back(send(1, {-from}, 40'000'000, 6 * kUs, forward ? "f" : "b").after({done}));
    if (last) items.push_back(collective(3, CollectiveKind::AllReduce, data, 200'000'000, 30 * kUs).after({done}));
    return of.segment("cell", std::move(items));
  };
  for (int s = 0; s < pp; ++s) {
    const SegmentId forward = cell(s, true, false), backward = cell(s, false, false), end = cell(s, false, true);
    const int warm_up = std::min(pp - 1 - s, microbatches);  // 1F1B
    for (int i = 0; i < warm_up; ++i) of.issue(roles[static_cast<std::size_t>(s)], forward);
    for (int i = 0; i < microbatches; ++i) {
      if (i < microbatches - warm_up) of.issue(roles[static_cast<std::size_t>(s)], forward);
      of.issue(roles[static_cast<std::size_t>(s)], i + 1 == microbatches ? end : backward);
    }
  }
  return of.plan();
}

// Four nodes per leaf, whose trunks carry an eighth of what the nodes below them could send.
Cluster tight(int gpus) {
  return lossless_cluster_of(switched_shape({.nvlink = 200e9}), (gpus + 7) / 8, {.nodes_per_leaf = 4, .oversubscription = 8});
}

using Times = std::map<std::tuple<int, int, int>, std::tuple<std::int64_t, std::int64_t, std::int64_t>>;

// What every rank did, whoever played it.
Times unfolded(const Result& result) {
  Times times;
  for (const Span& span : result.trace.spans)
    for (const RankId rank : result.trace.classes[span.who.index()].members)
      times[{rank.value, span.action, span.instruction}] = {span.ready.value, span.begin.value, span.end.value};
  return times;
}

void expect_same(const Result& folded, const Result& whole) {
  EXPECT_NEAR(folded.makespan_s, whole.makespan_s, 1e-12 * whole.makespan_s);
  const Times a = unfolded(folded), b = unfolded(whole);
  ASSERT_EQ(a.size(), b.size());
  std::int64_t worst = 0;
  for (const auto& [where, times] : b) {
    const auto at = a.find(where);
    ASSERT_NE(at, a.end());
    worst = std::max({worst, std::abs(std::get<0>(times) - std::get<0>(at->second)),
                      std::abs(std::get<1>(times) - std::get<1>(at->second)),
                      std::abs(std::get<2>(times) - std::get<2>(at->second))});
  }
  EXPECT_LE(worst, 1);  // nanosecond
}

// The load of every link, by link.
std::map<int, std::pair<double, double>> loads(const Result& result) {
  std::map<int, std::pair<double, double>> of;
  for (const LinkClass& link : result.trace.links)
    for (const LinkId id : link.links) of[id.value] = {link.bytes, link.busy.value};
  return of;
}

void expect_same_loads(const Result& folded, const Result& whole) {
  const auto a = loads(folded), b = loads(whole);
  ASSERT_EQ(a.size(), b.size());
  for (const auto& [link, load] : b) {
    EXPECT_NEAR(a.at(link).first, load.first, 1e-9 * load.first) << link;
    EXPECT_NEAR(a.at(link).second, load.second, 1e-9 * load.second) << link;
  }
}

struct Job {
  int tp, pp, dp, microbatches;
};

class FoldingOf : public testing::TestWithParam<Job> {};

TEST_P(FoldingOf, NoneTpAndFullAgree) {
  const Job job = GetParam();
  const Plan plan = training(job.tp, job.pp, job.dp, job.microbatches);
  const Cluster cluster = tight(job.tp * job.pp * job.dp);
  for (const Granularity granularity : {Granularity::Op, Granularity::Stage}) {
    const auto with = [&](Folding folding) {
      return simulate(plan, cluster, {.granularity = granularity, .folding = folding});
    };
    const Result none = with(Folding::None), tp = with(Folding::Tp), full = with(Folding::Full);
    EXPECT_EQ(none.trace.classes.size(), static_cast<std::size_t>(job.tp * job.pp * job.dp));
    EXPECT_EQ(tp.trace.classes.size(), static_cast<std::size_t>(job.pp * job.dp));
    EXPECT_LT(full.trace.classes.size(), tp.trace.classes.size());
    expect_same(tp, none);
    expect_same(full, none);
    expect_same_loads(tp, none);
    expect_same_loads(full, none);
  }
}

INSTANTIATE_TEST_SUITE_P(Jobs, FoldingOf, testing::Values(Job{8, 4, 2, 6}, Job{8, 2, 4, 4}, Job{8, 8, 8, 4}),
                         [](const auto& job) {
                           return std::to_string(job.param.tp * job.param.pp * job.param.dp) + "_gpus_dp" +
                                  std::to_string(job.param.dp);
                         });

// Plays the folded problem with every weight set to 1: the trunks then look as if one flow of each class crossed them.
double without_weights(const Plan& plan, const Cluster& cluster, bool really) {
  const Network network(cluster);
  const Ranks ranks(plan);
  const std::vector<player::RankSpeed> paces(static_cast<std::size_t>(ranks.count()));
  const player::Patterns patterns = player::find_patterns(plan);
  const player::Flows flows = player::find_flows(plan, patterns, ranks, network);
  player::Quotient quotient = player::fold(plan, ranks, network, patterns, flows, paces, Folding::Full, false);
  if (really) {
    for (player::Bundle& bundle : quotient.bundles)
      for (player::Crossing& crossing : bundle.crossings) crossing.times = 1;
    for (player::FlowClass& flow : quotient.flows)
      for (player::Crossing& crossing : flow.bundles) crossing.times = 1;
  }
  const player::FlowPaths ways = player::find_flow_paths(plan, ranks, patterns, flows, quotient);
  const player::PlayerInput input = player::make_player_input(plan, patterns, flows, quotient, ways, paces, Granularity::Op);
  const ReplayOptions options;
  player::LightClock clock;
  std::vector<Span> spans(input.spans());
  player::Player player(clock, plan, input, quotient, ways, options, spans);
  player.play();
  return player.makespan();
}

// The negative control: where links are really shared, forgetting the weights must show.
TEST(Folding, WeightsMatter) {
  const Plan plan = training(8, 4, 8, 4);
  const Cluster cluster = tight(256);
  const double right = simulate(plan, cluster, {.granularity = Granularity::Op}).makespan_s;
  EXPECT_NEAR(without_weights(plan, cluster, false), right, 1e-9 * right);
  EXPECT_LT(without_weights(plan, cluster, true), 0.97 * right);
}

// Roles a and b of two ranks on nodes of three GPUs: a0, a1 and b0 stand on the first one, b1 on the second. 100 MB from a to b take 1 ms
// over NVLink (100 GB/s) and 4 ms over the NIC (25 GB/s); b then computes for 1 ms. Folding tells the ranks apart; with one class per role
// each flow crosses what any of them crosses.
TEST(Folding, WithOneClassPerRoleARoleIsAsSlowAsItsSlowestRank) {
  PlanOf of;
  const AxisId two = of.axis(DenseKind::Data, 2);
  const RoleId a = of.role("a", {two}), b = of.role("b", {two});
  of.issue(a, {send(1, {1}, 100'000'000)});
  of.issue(b, {receive(1, {-1}, 100'000'000), compute(0, kMs).after({0})});
  const Cluster cluster = lossless_cluster_of(
      switched_shape({.gpus = 3, .per_switch = 3, .nics = 1, .nvlink = 100e9, .pcie = 1e12, .nic = 25e9}), 2);
  player::LightClock exact, rough;
  const Result folded = replay(of.plan(), cluster, exact);
  EXPECT_EQ(folded.trace.classes.size(), 4u);
  EXPECT_NEAR(folded.makespan_s, 5e-3, 1e-12);
  EXPECT_NEAR(milliseconds(span_of(folded, 2, 0, 1).end), 2, 1e-6);
  const Result estimate = replay(of.plan(), cluster, rough, {.one_class_per_role = true});
  EXPECT_EQ(estimate.trace.classes.size(), 2u);
  EXPECT_NEAR(estimate.makespan_s, 5e-3, 1e-12);
  EXPECT_NEAR(milliseconds(span_of(estimate, 2, 0, 1).end), 5, 1e-6);
}

// A replica that is slow has a class of its own in every stage it touches, and nothing else changes.
TEST(Folding, StragglersSplitTheirClass) {
  const Plan plan = training(8, 2, 4, 3);
  const Cluster cluster = tight(64);
  SimulateOptions options{.granularity = Granularity::Op, .folding = Folding::None, .stragglers = {{{11}, 1.3}}};
  const Result none = simulate(plan, cluster, options);
  options.folding = Folding::Full;
  const Result full = simulate(plan, cluster, options);
  expect_same(full, none);
  expect_same_loads(full, none);
  EXPECT_GT(full.makespan_s, simulate(plan, cluster, {.granularity = Granularity::Op}).makespan_s);
}

// Two tensor-parallel groups of a node without NVLink cross the same socket link, at the same time and all alike. They share it
// whether they are folded or not, and neither is merged as if it were alone: 2 groups x 1 GB over 25 GB/s, both ways at once.
TEST(Folding, TwinsThatShareALinkAreSimulated) {
  PlanOf of;
  const AxisId tp = of.axis(DenseKind::Tensor, 2), dp = of.axis(DenseKind::Data, 2);
  const RoleId role = of.role("r", {tp, dp});  // groups {0, 2} and {1, 3}: each across the sockets
  of.issue(role, {compute(0, kMs), collective(0, CollectiveKind::AllReduce, of.group({tp}), 1'000'000'000), compute(0, kMs)});
  of.plan().placement.order = {dp, tp, Placement::kRole};
  Cluster cluster = lossless_cluster_of(switched_shape({.gpus = 4, .per_switch = 1, .nics = 4, .nvlink = 0}), 1);
  for (NodeLink& link : cluster.nodes[0].shape.links)
    if (link.kind == LinkKind::CpuToCpu) link.bandwidth = {25e9 / link_share(link.kind)};
  SimulateOptions options{.granularity = Granularity::Stage, .folding = Folding::None};
  const Result none = simulate(of.plan(), cluster, options);
  options.folding = Folding::Full;
  const Result full = simulate(of.plan(), cluster, options);
  EXPECT_EQ(full.trace.classes.size(), 1u);
  expect_same(full, none);
  expect_same_loads(full, none);
  EXPECT_NEAR(none.makespan_s, 2e-3 + 2 * 1e9 / 25e9, 1e-12);
}

// Trunks as wide as the ports below them limit nobody: replicas at the border of a leaf are like the others, one class a stage.
TEST(Folding, WideTrunksDoNotSplitStages) {
  const Plan plan = training(8, 4, 6, 4);
  Cluster cluster = tight(192);
  cluster.fabric.oversubscription = 1;
  const Result full = simulate(plan, cluster, {.granularity = Granularity::Op});
  EXPECT_EQ(full.trace.classes.size(), 4u);
  const Result none = simulate(plan, cluster, {.granularity = Granularity::Op, .folding = Folding::None});
  expect_same(full, none);
  expect_same_loads(full, none);
}

}  // namespace
}  // namespace foreshard::folding_test
