// Interpolation of measured times, and where a profile replaces the cost model.
#include "strategy/cost/profile_time.h"

#include <gtest/gtest.h>

#include <cmath>

#include "core/cluster/cluster.h"
#include "core/cluster_file/cluster_file.h"
#include "strategy/cost/plan_costs.h"
#include "strategy/tune/tune.h"
#include "tests/strategy/support_alone.h"

namespace foreshard::profile_time_test {
namespace {

Compute product(std::int64_t m, std::int64_t n, std::int64_t k, Phase phase = Phase::Forward) {
  return {.op = ops::MatMul{},
          .phase = phase,
          .shapes = {{{1, m, n, k}, DType::F32}},
          .flops = {2.0 * static_cast<double>(m * n * k)},
          .traffic = {4 * (m * n + n * k + m * k)}};
}

ProfileSample sample(const Compute& what, double seconds) { return {dims_of(what), what.traffic, {seconds}}; }

// A machine of 1 GFLOP/s for products whatever their shape.
MachineProfile steady() {
  MachineProfile profile{.device = "host", .link_latency = {1e-6}, .link_bandwidth = {1e9}};
  ProfileOp forward{.op = "matmul", .dtype = DType::F32, .variant = "1"};
  for (const std::int64_t m : {32, 128, 512})
    for (const std::int64_t n : {32, 128, 512})
      forward.samples.push_back(sample(product(m, n, 128), 2e-9 * static_cast<double>(m * n * 128)));
  profile.ops = {forward};
  return profile;
}

TEST(ProfileTime, GivesWhatWasMeasured) {
  MachineProfile profile = steady();
  profile.ops[0].samples[4].time = {0.123};
  EXPECT_EQ(profiled_time(profile, product(128, 128, 128))->value, 0.123);
}

// Between and beyond the samples a constant rate stays that rate.
TEST(ProfileTime, KeepsAConstantRate) {
  for (const auto& [m, n, k] : {std::array<std::int64_t, 3>{64, 300, 128}, {48, 48, 96}, {4096, 4096, 4096}, {1, 1, 1}})
    EXPECT_NEAR(profiled_time(steady(), product(m, n, k))->value / (2e-9 * static_cast<double>(m * n * k)), 1, 1e-6);
}

// A rate that goes with the square root of the rows is met within 5 % halfway between two samples, where the nearest sample
// alone would be off by the factor 2^(1/2), 41 %.
TEST(ProfileTime, FollowsASlope) {
  MachineProfile profile{.device = "host"};
  ProfileOp forward{.op = "matmul", .dtype = DType::F32, .variant = "1"};
  const auto time = [](std::int64_t m) { return 2e-9 * std::sqrt(static_cast<double>(m)) * 128 * 128; };
  for (std::int64_t m = 16; m <= 4096; m *= 4) forward.samples.push_back(sample(product(m, 128, 128), time(m)));
  profile.ops = {forward};
  EXPECT_NEAR(profiled_time(profile, product(128, 128, 128))->value / time(128), 1, 0.05);
}

// Variant, then phase, then format: the nearest kind answers. Recomputing is a forward.
TEST(ProfileTime, TakesTheNearestKind) {
  MachineProfile profile = steady();
  Compute adds = product(128, 128, 128);
  adds.accumulate = true;
  EXPECT_TRUE(profiled_time(profile, adds));
  EXPECT_TRUE(profiled_time(profile, product(128, 128, 128, Phase::Recompute)));
  Compute sixteen = product(128, 128, 128);
  sixteen.shapes[0].dtype = DType::BF16;
  EXPECT_TRUE(profiled_time(profile, sixteen));
  Compute eighth = sixteen;  // much faster than all that was measured: the cost model knows better
  eighth.shapes[0].dtype = DType::F8;
  EXPECT_FALSE(profiled_time(profile, eighth));
  MachineProfile with_eighth = profile;
  with_eighth.ops.front().dtype = DType::F8;
  EXPECT_TRUE(profiled_time(with_eighth, eighth));
  EXPECT_FALSE(profiled_time(profile, product(128, 128, 128, Phase::WeightGrad)));
  EXPECT_FALSE(profiled_time(profile, {.op = ops::Norm{}, .shapes = {{{4, 4}, DType::F32}}}));
}

TEST(ProfileTime, CopiesAreLinearBetweenSizes) {
  MachineProfile profile;
  EXPECT_FALSE(profiled_copy(profile, {100}));
  profile.copies = {{1, {1000}, {1e-6}}, {1, {3000}, {2e-6}}};
  EXPECT_NEAR(profiled_copy(profile, {2000})->value, 1.5e-6, 1e-15);
  EXPECT_NEAR(profiled_copy(profile, {500})->value, 0.75e-6, 1e-15);
  EXPECT_NEAR(profiled_copy(profile, {6000})->value, 4e-6, 1e-15);
}

// One rank that multiplies and sends to a second one: 2 * 64^3 ns; 1 us before the first byte and 1 GB/s, whatever the link.
TEST(ProfileTime, ReplacesTheCostsOfItsDevice) {
  Cluster cluster = load_cluster("dgx-a100");
  Plan plan = plan_of_two(cluster, {{.what = product(64, 64, 64)},
                                    {.what = Exchange{.to = Peer{.role_shift = 1}, .bytes = {1000}}},
                                    {.what = Collective{.group = {0}, .bytes = {1000}}}});
  MachineProfile profile = steady();
  profile.hash = "1234";
  profile.collective_share = 0.25;
  cost_plan(plan, cluster, {}, &profile);
  EXPECT_EQ(plan.costs[0].profile_hash, "");  // another device
  const Nanoseconds modelled = plan.costs[0].by_segment[0][0].busy;
  profile.device = cluster.nodes[0].shape.gpu;
  cost_plan(plan, cluster, {}, &profile);
  EXPECT_EQ(plan.costs[0].profile_hash, "1234");
  const std::vector<Cost>& costs = plan.costs[0].by_segment[0];
  EXPECT_NE(costs[0].busy, modelled);
  EXPECT_NEAR(static_cast<double>(costs[0].busy.value), 2.0 * 64 * 64 * 64, 2);
  EXPECT_EQ(costs[1].busy.value, 1000);
  EXPECT_DOUBLE_EQ(costs[1].wire_factor, 300e9 / 1e9);  // NVLink 3: 300 GB/s
  EXPECT_EQ(costs[2].busy.value, 2000);                 // all-reduce of two: two steps
  EXPECT_EQ(costs[2].sm_share, 0.25);
  EXPECT_EQ(costs[1].sm_share, 0);  // a copy engine
}

TEST(ProfileTime, WhatLiesOutsideTheArenaIsWhatWasMeasured) {
  const Cluster cluster = load_cluster("dgx-a100");
  const Model model = load_model("gpt2-124m");
  MachineProfile profile{.device = cluster.nodes[0].shape.gpu, .outside_memory = {700'000'000}};
  profile.link_bandwidth = {1e9};
  const auto framework = [&](const Strategy& strategy) {
    return std::get<Lowered>(tuned_plan(model, cluster, strategy, {.profile = &profile})).plan.framework.value;
  };
  Strategy strategy{.dp = 8, .batch = {.global = 8}};
  strategy.attention = AttentionKernel::Unfused;             // which needs no workspace
  EXPECT_EQ(framework(strategy), 700'000'000 + (32 << 20));  // and a workspace of products
  strategy.device_memory.framework = Bytes{123};
  EXPECT_EQ(framework(strategy), 123);
  strategy.device_memory.framework.reset();
  profile.outside_memory = {};
  const auto estimated = framework(strategy);
  EXPECT_GT(estimated, 512 << 20);
  profile.outside_memory = {700'000'000}, profile.device = "another";
  EXPECT_EQ(framework(strategy), estimated);
}

}  // namespace
}  // namespace foreshard::profile_time_test
