// refine against the closed forms of the schedules, on plans whose costs are set so that all stages are equal.
#include <gtest/gtest.h>

#include "core/cluster_file/cluster_file.h"
#include "strategy/estimate/estimate.h"
#include "strategy/schedule/schedule.h"
#include "strategy/schedule/schedule_read.h"
#include "strategy/tune/tune.h"

namespace foreshard::refine_test {

namespace {

// Every forward of a chunk takes `forward`, every backward `backward`, or its halves `input` and `weight`, each on its first compute;
// a transfer takes `hop`, anything else nothing.
struct Times {
  Nanoseconds forward = {}, backward = {}, hop = {}, input = {}, weight = {};
};

Nanoseconds time_of(const Times& times, Work work) {
  if (work == Work::F) return times.forward;
  return work == Work::I ? times.input : work == Work::W ? times.weight : times.backward;
}

void level(Plan& plan, const Times& times) {
  std::vector<std::vector<Cost>>& costs = plan.costs.front().by_segment;
  for (std::vector<Cost>& segment : costs) segment.assign(segment.size(), {.busy = {0}, .wire_factor = 0});
  for (const Role& role : plan.roles)
    for (const Action& action : role.actions) {
      const std::vector<Instruction>& run = plan.segments[action.segment.index()].instructions;
      std::vector<Cost>& cost = costs[action.segment.index()];
      bool computed = action.does.empty() || action.does.front().work == Work::Update;
      for (std::size_t i = 0; i < run.size(); ++i) {
        if (const auto* what = std::get_if<Exchange>(&run[i].what); what && what->to) cost[i].busy = times.hop;
        if (computed || !std::holds_alternative<Compute>(run[i].what)) continue;
        cost[i].busy = time_of(times, action.does.front().work);
        computed = true;
      }
    }
}

struct Case {
  int p = 1, v = 1, m = 1;
  Schedule schedule = Schedule::OneFOneB;
};

double refined(const Case& c, const Times& times) {
  Model model = load_model("gpt2-355m");
  std::get<Transformer>(model.shape).layers = c.p * c.v;
  Strategy s;
  s.pp = c.p, s.virtual_stages = c.v, s.dp = 1, s.batch.micro = 1, s.batch.global = c.m, s.batch.seq = 128;
  s.pipeline.schedule = c.schedule;
  const Cluster cluster = load_cluster("dgx-a100");
  auto answer = tuned_plan(model, cluster, s, {.ignore_memory = true, .check = false});
  if (const auto* refused = std::get_if<Infeasible>(&answer)) {
    ADD_FAILURE() << refused->reason;
    return 0;
  }
  Lowered& lowered = std::get<Lowered>(answer);
  level(lowered.plan, times);
  return refine(lowered, cluster).time.value;
}

}  // namespace

// F 1, B 2 on two stages, two micro-batches: the last rank runs F0 1..2, B0 2..4, F1 4..5, B1 5..7, the first one's last backward is
// 7..9. When B1 of the last rank takes 5 it ends at 10, and the first one at 12.
TEST(ScheduleTimes, OneActionMayTakeAnotherTime) {
  const ScheduleLists lists = schedule_entry(Schedule::OneFOneB).lists({.p = 2, .m = 2});
  ScheduleTimes<std::int64_t> times = equal_times<std::int64_t>(2, 1, 2, 0);
  EXPECT_EQ(evaluate(lists, times)->makespan, 9);
  times.exact = {{-1, -1, -1, -1}, {-1, -1, -1, 5}};
  EXPECT_EQ(evaluate(lists, times)->makespan, 12);
  EXPECT_EQ(evaluate(lists, times)->idle, (std::vector<std::int64_t>{6, 3}));  // 12 less 6, 12 less 1 + 2 + 1 + 5
}

// docs of the schedules: with F and B of a whole rank, GPipe and 1F1B take (m + p - 1)(F + B) and interleaved 1F1B
// m (F + B) + (p - 1)(F + B) / v. F = 3 ms, B = 7 ms per chunk.
TEST(Refine, EqualsTheClosedFormsOfEqualStages) {
  constexpr Nanoseconds kForward{3'000'000}, kBackward{7'000'000};
  constexpr double kBoth = 0.010;
  for (const int p : {1, 2, 3, 4, 8})
    for (const int m : {1, 2, 5, 8, 16}) {
      for (const Schedule schedule : {Schedule::GPipe, Schedule::OneFOneB}) {
        const double exact = (m + p - 1) * kBoth;
        EXPECT_NEAR(refined({.p = p, .m = m, .schedule = schedule}, {kForward, kBackward}), exact, 1e-9 * exact)
            << p << " " << m;
      }
      for (const int v : {2, 3}) {
        if (p == 1 || m % p != 0) continue;
        const double exact = m * v * kBoth + (p - 1) * kBoth;
        EXPECT_NEAR(refined({.p = p, .v = v, .m = m, .schedule = Schedule::Interleaved}, {kForward, kBackward}), exact,
                    1e-9 * exact)
            << p << " " << v << " " << m;
      }
    }
}

// Fill and drain of GPipe cross p - 1 borders each: 2 (p - 1) transfers of 1 ms more.
TEST(Refine, CountsTheTransfersOfGPipe) {
  for (const int p : {2, 4, 8}) {
    const double exact = (6 + p - 1) * 0.010 + 2 * (p - 1) * 0.001;
    EXPECT_NEAR(refined({.p = p, .m = 6, .schedule = Schedule::GPipe}, {{3'000'000}, {7'000'000}, {1'000'000}}), exact,
                1e-9 * exact);
  }
}

// docs/schedules.md, "Closed forms", equal stages with transfers of c: 1F1B takes (m + p - 1)(F + B) and
// 2 c ((p-1) + floor((m-1)(p-1) / p)). F = 3 ms, B = 7 ms, c = 1 and 2.5 ms.
TEST(Refine, EqualsTheClosedFormOfOneFOneBWithTransfers) {
  for (const int p : {2, 3, 4, 5, 8})
    for (const int m : {1, 2, 3, 5, 8, 16, 17})
      for (const double c : {0.001, 0.0025}) {
        const int turns = (p - 1) + (m - 1) * (p - 1) / p;
        const double exact = (m + p - 1) * 0.010 + 2 * c * turns;
        const Times times{.forward = {3'000'000}, .backward = {7'000'000}, .hop = to_nanoseconds(Seconds{c})};
        EXPECT_NEAR(refined({.p = p, .m = m}, times), exact, 1e-9 * exact) << p << " " << m << " " << c;
      }
}

// Likewise interleaved: m v chunks of F + B on every rank, (p - 1) to fill and drain, and 2 c (v p - 1) for p that divides m and c
// at most one chunk's F and half of its B. F = 3 ms, B = 7 ms per chunk.
TEST(Refine, EqualsTheClosedFormOfInterleavedWithTransfers) {
  for (const int p : {2, 3, 4, 8})
    for (const int v : {2, 3})
      for (const int turns : {1, 2, 4})
        for (const double c : {0.001, 0.003}) {
          const int m = turns * p;
          const double exact = (m * v + p - 1) * 0.010 + 2 * c * (v * p - 1);
          const Times times{.forward = {3'000'000}, .backward = {7'000'000}, .hop = to_nanoseconds(Seconds{c})};
          EXPECT_NEAR(refined({.p = p, .v = v, .m = m, .schedule = Schedule::Interleaved}, times), exact, 1e-9 * exact)
              << p << " " << v << " " << m << " " << c;
        }
}

// zb-h1: m (F + I + W) and (p - 1)(F + I - W + 4 c) for m > p, W <= min(F, I), c at most half of each. F = 3, I = 4, W = 2, c = 1 ms.
TEST(Refine, EqualsTheClosedFormOfZeroBubbleWithTransfers) {
  for (const int p : {2, 3, 4, 8})
    for (const int m : {p + 1, 2 * p, 2 * p + 3})
      for (const double c : {0.0, 0.001}) {
        const double exact = m * 0.009 + (p - 1) * (0.005 + 4 * c);
        const Times times{
            .forward = {3'000'000}, .hop = to_nanoseconds(Seconds{c}), .input = {4'000'000}, .weight = {2'000'000}};
        EXPECT_NEAR(refined({.p = p, .m = m, .schedule = Schedule::ZeroBubbleH1}, times), exact, 1e-9 * exact)
            << p << " " << m << " " << c;
      }
}

// More micro-batches than were lowered are added by the times of the replay. A ring of context parallelism exchanges keys and values within an
// action; its last receive is not the action's beginning. 4 of 16 micro-batches, and all 16.
TEST(Refine, FurtherMicrobatchesOfARingTakeAsLongAsLowered) {
  const Model model = load_model("gpt2-355m");
  const Cluster cluster = load_cluster("dgx-a100");
  for (const int pp : {1, 2}) {
    Strategy s{.dp = 1, .cp = 4, .pp = pp, .context = ContextKind::Ring};
    s.batch.micro = 1, s.batch.seq = 1024;
    const auto lowered = [&](int microbatches) {
      s.batch.global = microbatches;
      return std::get<Lowered>(tuned_plan(model, cluster, s, {.ignore_memory = true, .check = false}));
    };
    const double all = refine(lowered(16), cluster).time.value;
    EXPECT_NEAR(refine(lowered(4), cluster, 16).time.value, all, 0.02 * all) << pp;
  }
}

// zb-2p on four ranks, F = I = 4 ms, W = 2 ms, no transfers: ten for a micro-batch. With 8 of them the longest rank is the first one. Its last
// five input gradients arrive every 8 ms, since rank 1 runs two weight gradients between two of its own, while I and W of rank 0 take 6: 80 + 5 x 2.
// With 24 no rank waits between its first and its last action. That the update of the plan waits for the norm of all gradients changes nothing.
// A cell stands for a forward and a backward at once: 32 micro-batches of which eight are lowered take as long as 32 that are.
TEST(Refine, FurtherMicrobatchesOfCellsTakeAsLongAsLowered) {
  const Cluster cluster = load_cluster("dgx-h100");
  Model model = load_model("qwen3-30b-a3b");
  std::get<Transformer>(model.shape).layers = 4;
  Strategy s;
  s.dp = 8, s.experts.ep = 8, s.batch.micro = 1, s.batch.seq = 1024;
  s.pipeline.schedule = Schedule::OneFOneBCells;
  s.communication.overlap = Overlap{.tp = true};
  const auto seconds = [&](int lowered, int all) {
    s.batch.global = 8 * lowered;
    auto answer = tuned_plan(model, cluster, s, {.ignore_memory = true, .check = false});
    if (const auto* refused = std::get_if<Infeasible>(&answer)) {
      ADD_FAILURE() << refused->reason;
      return 0.0;
    }
    return refine(std::get<Lowered>(answer), cluster, all).time.value;
  };
  const double whole = seconds(32, 32);
  EXPECT_NEAR(seconds(8, 32), whole, 0.02 * whole);
}

TEST(Refine, SkewIsThatOfStepsWithoutABarrier) {
  const Cluster cluster = load_cluster("dgx-a100");
  Model model = load_model("gpt2-355m");
  std::get<Transformer>(model.shape).layers = 4;
  for (const double clip_norm : {0.0, 1.0})
    for (const auto& [lowered_with, microbatches, span] : {std::tuple{8, 8, 0.090}, {8, 24, 0.240}, {24, 24, 0.240}}) {
      Strategy s{.dp = 1, .pp = 4, .batch = {.micro = 1, .global = lowered_with, .seq = 128}};
      s.pipeline.schedule = Schedule::ZeroBubble2p, s.pipeline.times = ActionTimes{2, 2, 1, 0};
      s.optimizer.clip_norm = clip_norm;
      Lowered lowered = std::get<Lowered>(tuned_plan(model, cluster, s, {.ignore_memory = true, .check = false}));
      level(lowered.plan, {.forward = {4'000'000}, .input = {4'000'000}, .weight = {2'000'000}});
      const Estimate found = refine(lowered, cluster, microbatches);
      EXPECT_NEAR(found.time.value - found.next_iteration_gain.value, span, 1e-6) << lowered_with << " " << microbatches;
    }
}

}  // namespace foreshard::refine_test
