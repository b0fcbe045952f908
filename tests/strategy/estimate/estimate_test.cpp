// The closed forms of the screen against the schedule's own recurrence, and its memory against that of lower.
#include <gtest/gtest.h>

#include <cmath>
#include <functional>
#include <random>

#include "core/cluster_file/cluster_file.h"
#include "core/network/network.h"
#include "strategy/estimate/estimate_screen.h"
#include "strategy/schedule/schedule.h"
#include "strategy/tune/tune.h"

namespace foreshard::estimate_test {

namespace {

double recurrence(Schedule schedule, const PipelineTimes& t) {
  const int stages = t.ranks * t.chunks, m = static_cast<int>(t.microbatches);
  ScheduleTimes<double> times{.latency = t.hop};
  for (int stage = 0; stage < stages; ++stage) {
    const std::size_t kind = stages == 1 ? 3 : stage == 0 ? 0 : stage + 1 == stages ? 2 : 1;
    const bool fewer = stage > 0 && stage <= t.fewer;
    times.forward.push_back(t.forward[kind] - (fewer ? t.forward_less : 0));
    times.input_grad.push_back(t.backward[kind] - (fewer ? t.backward_less : 0));
    times.weight_grad.push_back(0);
  }
  return evaluate(schedule_entry(schedule).lists({.p = t.ranks, .m = m, .v = t.chunks}), times)->makespan;
}

PipelineTimes equal(int ranks, int chunks, int m, double f, double b, double hop) {
  return {.ranks = ranks,
          .chunks = chunks,
          .microbatches = static_cast<double>(m),
          .forward = {f, f, f, f},
          .backward = {b, b, b, b},
          .hop = hop};
}

}  // namespace

// Four stages, F 2, B 4, transfer 1, eight micro-batches: the picture of docs/schedules.md with a transfer of half a forward has
// 82 columns. Without transfers (m + p - 1)(F + B) = 66.
TEST(Pipeline, OneFOneBHasTheLengthOfThePicture) {
  EXPECT_DOUBLE_EQ(pipeline_time(schedule_entry(Schedule::OneFOneB), equal(4, 1, 8, 2, 4, 1)), 82);
  EXPECT_DOUBLE_EQ(pipeline_time(schedule_entry(Schedule::OneFOneB), equal(4, 1, 8, 2, 4, 0)), 66);
  EXPECT_DOUBLE_EQ(pipeline_time(schedule_entry(Schedule::GPipe), equal(4, 1, 8, 2, 4, 0)), 66);
  // Cells: of 4 micro-batches on one rank, 3 forwards share a cell with a backward and hide 1 each: 4 (2 + 4) - 3.
  PipelineTimes cells = equal(1, 1, 4, 2, 4, 0);
  cells.hidden = {1, 1, 1, 1};
  EXPECT_DOUBLE_EQ(pipeline_time(schedule_entry(Schedule::OneFOneBCells), cells), 21);
}

TEST(Pipeline, ClosedFormsEqualTheRecurrenceForEqualStages) {
  for (int p = 1; p <= 8; ++p)
    for (int m = 1; m <= 24; ++m)
      for (const double hop : {0.0, 0.25}) {
        const PipelineTimes t = equal(p, 1, m, 1.0, 2.0, hop);
        const double gpipe = recurrence(Schedule::GPipe, t);
        EXPECT_NEAR(pipeline_time(schedule_entry(Schedule::GPipe), t), gpipe, 1e-9 * gpipe) << p << " " << m;
        const double alternating = recurrence(Schedule::OneFOneB, t);
        EXPECT_NEAR(pipeline_time(schedule_entry(Schedule::OneFOneB), t), alternating, 1e-9 * alternating)
            << p << " " << m << " " << hop;
        EXPECT_LE(pipeline_bound(schedule_entry(Schedule::OneFOneB), t), alternating * (1 + 1e-12));
      }
  for (int p = 2; p <= 6; ++p)
    for (int v = 2; v <= 4; ++v)
      for (int m = p; m <= 4 * p; m += p) {
        const PipelineTimes t = equal(p, v, m, 1.0, 2.0, 0);
        const double interleaved = recurrence(Schedule::Interleaved, t);
        EXPECT_NEAR(pipeline_time(schedule_entry(Schedule::Interleaved), t), interleaved, 1e-9 * interleaved)
            << p << " " << v << " " << m;
      }
}

// First and last stage up to 40 % away from the others, transfers up to a tenth of a forward; seed 3.
TEST(Pipeline, UnequalEndsStayWithinAFewPercent) {
  std::mt19937 random(3);
  std::uniform_real_distribution<double> factor(0.6, 1.4), small(0, 0.1);
  double worst = 0;
  std::vector<double> errors;
  for (int trial = 0; trial < 1000; ++trial) {
    const int p = 2 + trial % 7, m = p * (1 + trial % 5) + trial % 3;
    PipelineTimes t = equal(p, 1, m, 1, 2, small(random));
    for (const std::size_t end : {0u, 2u}) {
      const double f = factor(random);
      t.forward[end] = f, t.backward[end] = 2 * f;
    }
    const double exact = recurrence(Schedule::OneFOneB, t),
                 error = std::abs(pipeline_time(schedule_entry(Schedule::OneFOneB), t) / exact - 1);
    EXPECT_LE(pipeline_bound(schedule_entry(Schedule::OneFOneB), t), exact * (1 + 1e-12));
    errors.push_back(error);
    worst = std::max(worst, error);
  }
  std::sort(errors.begin(), errors.end());
  EXPECT_LT(errors[500], 0.001);
  EXPECT_LT(errors[950], 0.03);
  EXPECT_LT(worst, 0.12);
  RecordProperty("p50 p95 worst",
                 std::to_string(errors[500]) + " " + std::to_string(errors[950]) + " " + std::to_string(worst));
}

// 96 layers on 64 stages: the stages that follow the first one have one layer, others two. GPipe is exact: sums and maxima; 1F1B
// for one micro-batch, which goes down and up once, and else within 8 %.
TEST(Pipeline, SomeStagesHaveALayerLess) {
  for (int p = 3; p <= 9; ++p)
    for (int fewer = 1; fewer < p - 2; ++fewer)
      for (int m = 1; m <= 3 * p; ++m) {
        PipelineTimes t = equal(p, 1, m, 2.0, 4.0, 0);
        t.forward[0] = t.forward[2] = 1, t.backward[0] = t.backward[2] = 2;
        t.fewer = fewer, t.forward_less = 1, t.backward_less = 2;
        const double gpipe = recurrence(Schedule::GPipe, t), alternating = recurrence(Schedule::OneFOneB, t);
        EXPECT_NEAR(pipeline_time(schedule_entry(Schedule::GPipe), t), gpipe, 1e-9 * gpipe) << p << " " << fewer << " " << m;
        EXPECT_NEAR(pipeline_time(schedule_entry(Schedule::OneFOneB), t), alternating, (m == 1 ? 1e-9 : 0.08) * alternating)
            << p << " " << fewer << " " << m;
        EXPECT_LE(pipeline_bound(schedule_entry(Schedule::GPipe), t), gpipe * (1 + 1e-12));
        EXPECT_LE(pipeline_bound(schedule_entry(Schedule::OneFOneB), t), alternating * (1 + 1e-12));
      }
}

// More layers than a probe has: the arena of the whole plan.
TEST(Screen, MemoryIsThatOfThePlan) {
  const Model model = load_model("llama-2-13b");
  const Cluster cluster = load_cluster("dgx-h100-x2");
  Strategy base;
  base.batch.global = 64;
  const Screen screen(model, cluster, base);
  for (Point point :
       {Point{.tp = 2, .pp = 4, .dp = 2}, Point{.tp = 4, .pp = 2, .dp = 2, .sequence_parallel = true, .zero = 1},
        Point{.tp = 1, .pp = 8, .dp = 2, .zero = 1, .recompute = RecomputeKind::Full},
        // Chunks of two layers and of one: what they send, receive, gather and reduce is more than a third of the memory.
        Point{.tp = 2,
        .pp = 2,
        .virtual_stages = 10,
        .dp = 4,
        .zero = 3,
        .recompute = RecomputeKind::Full,
        .schedule = Schedule::Interleaved},
        Point{.tp = 2,
        .pp = 4,
        .virtual_stages = 10,
        .dp = 2,
        .zero = 2,
        .recompute = RecomputeKind::Full,
        .schedule = Schedule::Interleaved}}) {
    // as a search lowers it
    const auto answer = tuned_plan(model, cluster, strategy_at(base, point), {.ignore_memory = true, .pack_by_order = false});
    const Estimate exact = refine(std::get<Lowered>(answer), cluster);
    const Screened screened = screen.at(point, screen.shape(point).value(), screen.grid(point));
    EXPECT_NEAR(screened.peak / static_cast<double>(exact.peak.value), 1, 0.03) << point.pp << " " << point.virtual_stages;
    EXPECT_NEAR(screened.time / exact.time.value, 1, point.virtual_stages > 1 ? 0.04 : 0.02);
  }
}

// 96 layers on 64 stages of GPT-3: those with one layer have room where those with two redo both. One micro-batch goes through all of
// them, so its time is that of all layers and of those that are redone.
TEST(Screen, StagesThatHaveALayerLessRedoTheirOwnNumber) {
  const Model model = load_model("gpt3-175b");
  const Cluster cluster = load_cluster("dgx-a100-x64");
  Strategy base;
  base.batch.global = 256;
  const Screen screen(model, cluster, base);
  int unlike = 0;
  for (const Point& point : {Point{.tp = 4, .pp = 64, .dp = 2, .micro_batch = 32, .zero = 3, .recompute = RecomputeKind::Full},
                             Point{.tp = 4, .pp = 64, .dp = 2, .micro_batch = 64, .zero = 3, .recompute = RecomputeKind::Full},
                             Point{.tp = 8, .pp = 64, .dp = 1, .micro_batch = 64, .recompute = RecomputeKind::Full}}) {
    Point fills = point, none = point;
    fills.recompute_layers = -1, none.recompute = RecomputeKind::None;
    const auto answer =
        tuned_plan(model, cluster, strategy_at(base, fills, 96), {.pack_by_order = false});  // as a search lowers it
    ASSERT_TRUE(std::holds_alternative<Lowered>(answer)) << std::get<Infeasible>(answer).reason;
    const std::vector<int>& redone = std::get<Lowered>(answer).strategy.recompute.per_stage;
    unlike += redone.size() == 64 && redone[20] < redone[50];
    const double exact = refine(std::get<Lowered>(answer), cluster).time.value;
    const Screened screened = screen.filled(fills, screen.shape(none).value(), screen.shape(point).value(), screen.grid(point));
    EXPECT_NEAR(screened.time / exact, 1, 0.03) << point.micro_batch;
    EXPECT_LE(screened.bound, exact);
  }
  EXPECT_GE(unlike, 1);
}

// Tensor groups of two nodes with a NIC for four GPUs each. What the stages of a probe send each other crosses the same NICs, and is none of
// the costs of a layer: with sums over whole tokens (no sequence parallelism) that was 6 % of the time, and of the bound.
TEST(Screen, ProbesDoNotCountTheirOwnTransfers) {
  const Model model = load_model("gpt2-355m");
  const Cluster cluster = load_cluster("workstation-rtx4090-x4");
  Strategy base;
  base.batch.global = 64;
  const Screen screen(model, cluster, base);
  for (const bool sequence_parallel : {false, true})
    for (const RecomputeKind recompute : {RecomputeKind::None, RecomputeKind::Full}) {
      const Point point{
          .tp = 8, .pp = 1, .dp = 2, .micro_batch = 2, .sequence_parallel = sequence_parallel, .recompute = recompute};
      const auto answer = tuned_plan(model, cluster, strategy_at(base, point));
      const double exact = refine(std::get<Lowered>(answer), cluster).time.value;
      const Screened screened = screen.at(point, screen.shape(point).value(), screen.grid(point));
      EXPECT_NEAR(screened.time / exact, 1, 0.001) << sequence_parallel;
      EXPECT_LE(screened.bound, exact);
    }
}

// Of four nodes with a NIC each, two stages stand in the first: both send their sums over its NIC, so it is busy as long as both take.
TEST(LinkLoads, StagesOfANodeAddUp) {
  LinkLoads loads;
  LinkLoads::Link nic, other, slower;
  nic.collectives[static_cast<std::size_t>(Flow::AllReplicas)] = {1, 1, 0}, nic.neighbours = 1e-9;
  other.collectives[static_cast<std::size_t>(Flow::AllReplicas)] = {0, 1, 0.5}, other.wraps = 2e-9;
  slower.collectives[static_cast<std::size_t>(Flow::AllReplicas)] = {0.5, 1, 0}, slower.neighbours = 1e-9;
  loads.links = {slower, nic, other};
  FlowSeconds seconds = {};
  seconds[static_cast<std::size_t>(Flow::AllReplicas)] = {2, 3, 5};
  seconds[static_cast<std::size_t>(Flow::Tensor)] = {100, 100, 100};  // on other links
  for (const std::size_t kept : {3U, 2U}) {
    EXPECT_EQ(loads.links.size(), kept);
    EXPECT_DOUBLE_EQ(loads.busy(seconds, 1e9, 0), 2 + 3 + 1);
    EXPECT_DOUBLE_EQ(loads.busy(seconds, 0, 4e9), 3 + 2.5 + 8);
    loads.keep_fullest();  // never changes the answer
  }
}

// A stage in each of two nodes, one NIC of 25 Gb/s for the eight GPUs of each: micro-batches of 4 samples of 512 tokens of 1024 values in 16 bits,
// eight replicas of 2 MiB each, cross it in either direction, at 0.94 of 25e9 / 8 bytes a second.
TEST(Screen, NoPipelineIsFasterThanItsLinks) {
  const Model model = load_model("gpt2-355m");
  const Cluster cluster = load_cluster("eth25-a100-x2");
  Strategy base;
  base.batch.global = 8192, base.batch.seq = 512;
  const Screen screen(model, cluster, base);
  const Point point{.pp = 2, .dp = 8, .micro_batch = 1, .zero = 1};
  const GridCosts grid = screen.grid(point);
  ASSERT_FALSE(grid.loads.links.empty());
  const double rank_bytes = 512.0 * 1024 * 2, rate = 25e9 / 8 * link_share(LinkKind::Network);
  EXPECT_NEAR(grid.loads.busy({}, rank_bytes, 0), 8 * rank_bytes / rate, 0.05 * 8 * rank_bytes / rate);
  const Screened screened = screen.at(point, screen.shape(point).value(), grid);
  EXPECT_GE(screened.time, 1024 * 8 * rank_bytes / rate);
}

// Stages of 32 GPUs in racks of 72: the second expert group of 16 GPUs of the third stage crosses two racks. Stages of 72 do not.
TEST(Screen, GroupsThatCrossMoreNodesThanTheFirstAreSeen) {
  const Cluster racks = load_cluster("gb200-nvl72-x4");
  const auto rows = [&](int pp, int dp, int ep) {
    Point point;
    point.tp = 1, point.pp = pp, point.dp = dp, point.ep = ep;
    GridCosts grid;
    measure_crossings(racks, point, grid);
    EXPECT_EQ(grid.tensor_across, 1);
    return grid.rows_across;
  };
  EXPECT_GT(rows(9, 32, 16), 2);
  EXPECT_EQ(rows(4, 72, 8), 1);
  EXPECT_EQ(rows(9, 32, 8), 1);
}

// The layers of a rank, for every split of 5 to 12 layers over 2 to 4 ranks with a head of 0 to 4 layers: none has a busiest stage that
// is faster than the screen says.
TEST(Screen, NoSplitIsFasterThanTheBalancedOne) {
  for (int layers = 5; layers <= 12; ++layers) {
    Model model = load_model("gpt2-355m");
    std::get<Transformer>(model.shape).layers = layers;
    const Cluster cluster = load_cluster("dgx-a100");
    Strategy base;
    base.batch.global = 8;
    const ScreenedModel screened(model, cluster, base, nullptr);
    for (int pp = 2; pp <= 4; ++pp)
      for (double head = 0; head <= 4; head += 0.75) {
        Point point;
        point.pp = pp, point.micro_batch = 1;
        ShapeCosts shape;
        shape.forward = {{1.25, 1, 1 + head, 1.25 + head}, 1};
        shape.backward = {{2.25, 2, 2 + 2 * head, 2.25 + 2 * head}, 2};
        const GridCosts grid;
        const ScreenedModel::Layers even = screened.layers_of(point);
        const auto pace = [&](const std::vector<int>& split) {
          double most = 0;
          for (std::size_t rank = 0; rank < split.size(); ++rank) {
            const int kind = rank == 0 ? stage_kind::First : rank + 1 == split.size() ? stage_kind::Last : stage_kind::Middle;
            most = std::max(most, shape.forward.of(kind, split[rank]) + shape.backward.of(kind, split[rank]));
          }
          return most;
        };
        double best = 1e9;
        std::vector<int> split(static_cast<std::size_t>(pp), 1);
        const std::function<void(std::size_t, int)> all = [&](std::size_t rank, int left) {
          if (rank + 1 == split.size()) return split[rank] = left, best = std::min(best, pace(split)), void();
          for (int own = 1; own <= left - (pp - static_cast<int>(rank) - 1); ++own)
            split[rank] = own, all(rank + 1, left - own);
        };
        all(0, layers);
        std::vector<int> equal(static_cast<std::size_t>(pp), static_cast<int>(even[stage_kind::Middle]));
        equal.front() = static_cast<int>(even[stage_kind::First]), equal.back() = static_cast<int>(even[stage_kind::Last]);
        const double saved = PointTimes(screened, point, shape, grid).balancing() / screened.microbatches(point);
        EXPECT_NEAR(pace(equal) - saved, best, 1e-9) << layers << " layers, " << pp << " ranks, head of " << head;
      }
  }
}

}  // namespace foreshard::estimate_test
