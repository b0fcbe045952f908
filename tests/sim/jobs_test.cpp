// Whole jobs: models, clusters and strategies through lower, check_plan and simulate.
#include <cmath>
#include <random>

#include "core/check/check_plan.h"
#include "core/cluster_file/cluster_file.h"
#include "sim/simulate.h"
#include "strategy/tune/tune.h"
#include "tests/how_many.h"
#include "tests/strategy/support_lower.h"

namespace foreshard::jobs_test {

namespace {

// Every forward takes `forward`, every backward `backward`, whatever its stage; communication is free.
void equal_stages(Plan& plan, Nanoseconds forward, Nanoseconds backward) {
  for (std::size_t s = 0; s < plan.segments.size(); ++s) {
    const Segment& segment = plan.segments[s];
    Nanoseconds left = segment.name.starts_with("forward")    ? forward
                       : segment.name.starts_with("backward") ? backward
                                                              : Nanoseconds{};
    for (std::size_t i = 0; i < segment.instructions.size(); ++i) {
      Cost& cost = plan.costs.front().by_segment[s][i];
      cost = {.wire_factor = 0};
      if (std::holds_alternative<Compute>(segment.instructions[i].what)) cost.busy = std::exchange(left, Nanoseconds{});
    }
  }
}

}  // namespace

// Megatron 1T on 3072 GPUs: 64 stages, 512 micro-batches. 1F1B of equal stages takes (m + p - 1)(F + B) and stands still
// (p - 1)/(m + p - 1) = 63/575 of it (docs/schedules.md).
TEST(Jobs, TrillionParameterBubble) {
  Lowered job = lowered("megatron-1t", "dgx-a100-x384", {.tp = 8, .pp = 64, .batch = {.global = 3072}}, false);
  ASSERT_EQ(job.plan.microbatches, 512);
  equal_stages(job.plan, {1'000'000}, {2'000'000});
  const Result result = simulate(job.plan, load_cluster("dgx-a100-x384"), {.granularity = Granularity::Stage});
  EXPECT_EQ(result.trace.makespan, Nanoseconds{(512 + 63) * 3'000'000LL});
  for (std::size_t who = 0; who < result.trace.classes.size(); ++who) {
    Nanoseconds busy = {};
    for (const Span& span : result.trace.spans)
      if (span.who.index() == who && span.stream.value == 0) busy += span.end - span.begin;
    EXPECT_EQ(busy, Nanoseconds{512 * 3'000'000LL});
  }
  EXPECT_NEAR(100.0 * 63 / 575, 10.96, 0.01);
}

// Clipping sums one number over all ranks at the end. Tensor collectives have their links to themselves as without it, so they stay in
// the steps of their computes: a stage's steps grow by what the norm itself does, not with the layers.
TEST(Jobs, TheGlobalNormLeavesTensorCollectivesTheirLinks) {
  Strategy s{.tp = 8, .pp = 2, .batch = {.global = 32, .seq = 512}};
  const auto steps = [&] {
    const Lowered job = lowered("gpt2-355m", "dgx-a100-x4", s);
    return simulate(job.plan, load_cluster("dgx-a100-x4"), {.granularity = Granularity::Stage}).trace.spans.size();
  };
  const std::size_t without = steps();
  s.optimizer.clip_norm = 1;
  const std::size_t updates =
      2 * 30;  // a norm and a clip for each unit of gradients, fewer than 30 of them on each of two ranks
  EXPECT_LT(steps(), without + 2 * updates);
}

// With sequence parallelism tensor ranks sum the gradients of norms over the links of their collectives, in the last backward. Before that these have
// the links to themselves: they come along with their neighbours, at isolated time.
TEST(Jobs, SumsOfTheLastBackwardLeaveEarlierTensorCollectivesTheirLinks) {
  const Cluster cluster = load_cluster("dgx-a100-x4");
  const auto played = [&](std::int64_t batch, Granularity granularity) {
    const Lowered job =
        lowered("gpt2-355m", "dgx-a100-x4",
                {.tp = 8, .pp = 2, .sequence_parallel = true, .batch = {.global = batch, .seq = 512}, .zero = {.stage = 1}});
    return simulate(job.plan, cluster, {.granularity = granularity});
  };
  const Result few = played(16, Granularity::Stage), many = played(32, Granularity::Stage), exact = played(32, Granularity::Op);
  EXPECT_LE(many.trace.spans.size() - few.trace.spans.size(),
            8U * 2 * 8);  // of 8 more micro-batches on two ranks: computes, transfers
  EXPECT_NEAR(many.makespan_s, exact.makespan_s, 1e-6 * exact.makespan_s);
}

// Any cluster and any strategy: an answer in finite time, and never a broken one.
TEST(Jobs, RandomClustersAndStrategiesPlayToTheEnd) {
  std::mt19937 engine(411);
  const auto pick = [&](int low, int high) { return std::uniform_int_distribution<int>(low, high)(engine); };
  const std::vector<std::string> clusters = {"dgx1-v100",           "dgx-a100",    "dgx-h100",
                                             "workstation-rtx4090", "pcie-a100-8", "eth25-a100"};
  int played = 0;
  for (int round = 0; round < how_many(25, 60); ++round) {
    const Cluster cluster = load_cluster(clusters[static_cast<std::size_t>(pick(0, 5))] + "-x" + std::to_string(pick(1, 4)));
    Strategy s{.tp = 1 << pick(0, 3), .pp = 1 << pick(0, 2), .sequence_parallel = pick(0, 1) == 1};
    s.virtual_stages = s.pp > 1 ? pick(1, 2) : 1;
    s.batch.global = 64;
    s.zero.stage = pick(0, 3);
    s.precision = pick(0, 1) ? DType::F16 : DType::F32;
    s.recompute.kind = pick(0, 1) ? RecomputeKind::Full : RecomputeKind::None;
    s.communication.overlap =
        Overlap{.gradients = pick(0, 1) == 1, .parameters = pick(0, 1) == 1, .p2p = pick(0, 1) == 1, .tp = pick(0, 1) == 1};
    const auto answer = tuned_plan(load_model(pick(0, 3) ? "gpt2-355m" : "resnet-50"), cluster, s, {.ignore_memory = true});
    if (!std::holds_alternative<Lowered>(answer)) continue;
    const Plan& plan = std::get<Lowered>(answer).plan;
    ASSERT_TRUE(check_plan(plan).empty()) << to_json(s);
    const Result result = simulate(plan, cluster, {.granularity = pick(0, 1) ? Granularity::Layer : Granularity::Stage});
    ++played;
    ASSERT_TRUE(std::isfinite(result.makespan_s) && result.makespan_s > 0) << to_json(s);
    for (const Span& span : result.trace.spans) {
      ASSERT_LE(span.begin, span.end) << to_json(s);
      ASSERT_GE(span.begin, Nanoseconds{});
      ASSERT_LE(span.end, result.trace.makespan);
    }
    for (const MemoryCurve& curve : result.memory.curves) ASSERT_LE(sum(curve.peak), curve.arena) << to_json(s);
  }
  EXPECT_GT(played, how_many(8, 20));
}

// Twice the bandwidth everywhere is never slower; a straggler is never faster.
TEST(Jobs, BetterHardwareIsNeverSlower) {
  Cluster cluster = load_cluster("pcie-a100-8-x2");
  const Lowered job = lowered(load_model("gpt2-774m"), cluster, {.tp = 4, .pp = 2, .batch = {.global = 32}});
  const auto time = [&](const Cluster& on, std::vector<Straggler> stragglers = {}) {
    return simulate(job.plan, on, {.granularity = Granularity::Stage, .stragglers = std::move(stragglers)}).makespan_s;
  };
  const double base = time(cluster);
  EXPECT_GT(time(cluster, {{RankId{3}, 1.5}}), base);
  for (NodeLink& link : cluster.nodes.front().shape.links) link.bandwidth = link.bandwidth * 2;
  EXPECT_LT(time(cluster), base);
}

}  // namespace foreshard::jobs_test
