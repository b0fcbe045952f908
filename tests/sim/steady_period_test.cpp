// Runs that overlap: the period is that of a full pipeline. By hand, m micro-batches of a stage; of lowered plans, the work of the busiest
// stage, on both clocks.
#include <gtest/gtest.h>

#include <map>

#include "core/check/check_plan.h"
#include "core/cluster_file/cluster_file.h"
#include "replay/light_clock.h"
#include "sim/simulate.h"
#include "strategy/estimate/estimate.h"
#include "strategy/estimate/estimate_screen.h"
#include "strategy/schedule/schedule.h"
#include "strategy/tune/tune.h"
#include "tests/core/network_clusters.h"
#include "tests/sim/plans.h"

namespace foreshard::steady_period_test {
namespace {

using namespace playing;

constexpr std::int64_t kForward = 2 * kMs, kBackward = 3 * kMs;

// Of the lists of pipedream, without updates. Streams: 0 compute; one for each side and direction, so that only the data waits.
Plan pipeline(int p, int m) {
  PlanOf of;
  for (int rank = 0; rank < p; ++rank) of.role("rank" + std::to_string(rank), {}, 5);
  const ScheduleLists lists = schedule_entry(Schedule::PipeDream).lists({.p = p, .m = m});
  for (int rank = 0; rank < p; ++rank) {
    const std::vector<ScheduleOp>& list = lists[static_cast<std::size_t>(rank)];
    for (const ScheduleOp& op : list) {
      const bool forward = op.work == Work::F;
      const int from = forward ? -1 : 1, side = forward ? 1 : 3;
      const auto exists = [&](int shift) { return rank + shift >= 0 && rank + shift < p; };
      std::vector<Item> items;
      if (exists(from)) items.push_back(receive(side, {from}, 0, 0, forward ? "F" : "B"));
      items.push_back(compute(0, forward ? kForward : kBackward));
      if (exists(from)) items.back().what.after = {0};
      const int done = static_cast<int>(items.size()) - 1;
      if (exists(-from)) items.push_back(send(side + 1, {-from}, 0, 0, forward ? "F" : "B").after({done}));
      of.issue({rank}, std::move(items));
    }
    const int ahead = forwards_ahead(list);
    for (std::size_t i = 0; i < list.size(); ++i)
      if (list[i].work == Work::B && list[i].microbatch >= m - ahead)
        of.plan().roles[static_cast<std::size_t>(rank)].ahead.push_back(static_cast<std::int32_t>(i) - 1);
  }
  return of.plan();
}

double seconds_of(std::int64_t nanoseconds) { return static_cast<double>(nanoseconds) * 1e-9; }

// By itself a run takes (m + p - 1) of them, in a row with others m.
TEST(SteadyPeriod, IsThatOfAFullPipeline) {
  for (const int p : {1, 2, 3, 4, 8})
    for (const int m : {p, p + 1, 2 * p, 3 * p + 1}) {
      const Plan plan = pipeline(p, m);
      const Cluster cluster = lossless_cluster_of(switched_shape({}), 1);
      const double alone = seconds_of((m + p - 1) * (kForward + kBackward)), steady = seconds_of(m * (kForward + kBackward));
      EXPECT_EQ(has_steady_period(plan), p > 1);
      EXPECT_NEAR(steady_period(plan, cluster, {}, 6), steady, 1e-12) << p << " " << m;
      EXPECT_NEAR(makespan_of(plan, cluster), steady, 1e-12) << p << " " << m;
      const auto runs = [&](int count) { return simulate(plan, cluster, {.memory = false, .runs = count}).makespan_s; };
      EXPECT_NEAR(runs(1), alone, 1e-12) << p << " " << m;
      EXPECT_NEAR(runs(4), alone + 3 * steady, 1e-12) << p << " " << m;
      if (p == 1) continue;
      const Result result = simulate(plan, cluster);
      EXPECT_NEAR(result.period_s, steady, 1e-12);
      EXPECT_NEAR(result.makespan_s, alone, 1e-12);
    }
}

// Every run issues the same, in the same order: the spans of run k are those of run 0 with other times.
TEST(SteadyPeriod, EveryRunDoesAllItsWork) {
  const Plan plan = pipeline(4, 5);
  const Cluster cluster = lossless_cluster_of(switched_shape({}), 1);
  const Result result = simulate(plan, cluster, {.memory = false, .runs = 3});
  std::map<std::pair<int, int>, int> times;  // of an action of a role: once in each run
  for (const Span& span : result.trace.spans) ++times[{span.who.value, span.action}];
  for (const RankClass& who : result.trace.classes)
    for (std::size_t a = 0; a < 3 * plan.roles[who.role.index()].actions.size(); ++a)
      EXPECT_GT((times[{static_cast<int>(&who - result.trace.classes.data()), static_cast<int>(a)}]), 0) << a;
}

struct Job {
  Lowered lowered = {};
  Cluster cluster = {};
};
Job job_of(Schedule schedule, int pp, int microbatches, int group = 0) {
  const Cluster cluster = load_cluster("dgx-a100");
  Model model = load_model("gpt2-355m");
  std::get<Transformer>(model.shape).tied_embeddings = false;
  Strategy s{.dp = 1,
             .pp = pp,
             .pipeline = {.schedule = schedule, .microbatch_group = group},
             .batch = {.micro = 2, .global = 2 * microbatches, .seq = 1024}};
  auto answer = tuned_plan(model, cluster, s);
  EXPECT_TRUE(std::holds_alternative<Lowered>(answer));
  return {.lowered = std::get<Lowered>(std::move(answer)), .cluster = cluster};
}

// Its computes, as they are in a run by itself.
double busiest_work(const Result& alone) {
  std::vector<std::int64_t> busy(alone.trace.classes.size());
  for (const Span& span : alone.trace.spans)
    if (span.stream.value == 0) busy[span.who.index()] += (span.end - span.begin).value;
  return seconds_of(*std::ranges::max_element(busy));
}

TEST(SteadyPeriod, OfLoweredPlansIsTheWorkOfTheBusiestStage) {
  for (const Schedule schedule : {Schedule::PipeDream, Schedule::PipeDream2BW, Schedule::PipeMare})
    for (const auto& [pp, microbatches] : {std::pair{4, 4}, {4, 16}, {8, 24}}) {
      const auto [lowered, cluster] = job_of(schedule, pp, microbatches);
      const Plan& plan = lowered.plan;
      const Result result = simulate(plan, cluster, {.granularity = Granularity::Op});
      const double work = busiest_work(result);
      EXPECT_GE(result.period_s, work * (1 - 1e-9)) << name_of(schedule) << " " << pp << " " << microbatches;
      EXPECT_LE(result.period_s, work * 1.01) << name_of(schedule) << " " << pp << " " << microbatches;
      EXPECT_GT(result.makespan_s, result.period_s * 1.1);
      for (const int runs : {2, 3, 9})
        EXPECT_NEAR(steady_period(plan, cluster, {.granularity = Granularity::Op}, runs), result.period_s,
                    1e-3 * result.period_s);
    }
}

// What a search compares: the estimate of a plan, and of an iteration with more micro-batches than the plan has.
TEST(SteadyPeriod, IsWhatEstimatesSay) {
  for (const Schedule schedule : {Schedule::PipeDream, Schedule::PipeDream2BW, Schedule::PipeMare}) {
    const auto [few, cluster] = job_of(schedule, 4, 8);
    const double period = makespan_of(few.plan, cluster, {.granularity = Granularity::Stage});
    EXPECT_NEAR(refine(few, cluster).time.value, period, 1e-9 * period);
    const double longer = makespan_of(job_of(schedule, 4, 24).lowered.plan, cluster, {.granularity = Granularity::Stage});
    EXPECT_NEAR(refine(few, cluster, 24).time.value, longer, 0.01 * longer);
  }
}

TEST(SteadyPeriod, IsWhatTheScreenOfASearchSays) {
  Model model = load_model("gpt2-1.5b");
  std::get<Transformer>(model.shape).tied_embeddings = false;
  const Cluster cluster = load_cluster("dgx-a100");
  Strategy base;
  base.batch.global = 24;
  for (const Schedule schedule : {Schedule::PipeDream, Schedule::PipeDream2BW, Schedule::PipeMare})
    for (const int pp : {2, 4, 8}) {
      const Point point{.pp = pp, .schedule = schedule};
      const auto answer = tuned_plan(model, cluster, strategy_at(base, point), {.ignore_memory = true, .check = false});
      ASSERT_TRUE(std::holds_alternative<Lowered>(answer)) << std::get<Infeasible>(answer).reason;
      const double period = makespan_of(std::get<Lowered>(answer).plan, cluster, {.granularity = Granularity::Stage});
      const Screen screen(model, cluster, base);
      const Screened screened = screen.at(point, screen.shape(point).value(), screen.grid(point));
      EXPECT_NEAR(screened.time / period, 1, 0.06) << name_of(schedule) << " " << pp;
      EXPECT_LE(screened.bound, period * (1 + 1e-9)) << name_of(schedule) << " " << pp;
    }
}

// With one stage no action is issued ahead, but forwards do not wait for the update of the run before (ZeRO-Offload's delayed update).
TEST(SteadyPeriod, OfOneStageTheUpdateIsBesideTheNextRun) {
  const Cluster cluster = load_cluster("dgx-a100");
  Strategy s{.dp = 1, .batch = {.micro = 2, .global = 16, .seq = 1024}};
  s.pipeline = {.schedule = Schedule::PipeDream2BW, .microbatch_group = 8};
  s.offload.optimizer = Space::PinnedHost, s.offload.updated_on = UpdatedOn::Host;
  for (const int groups : {1, 2}) {
    s.batch.global = 16 * groups;
    auto answer = tuned_plan(load_model("gpt2-355m"), cluster, s);
    ASSERT_TRUE(std::holds_alternative<Lowered>(answer));
    const Plan& plan = std::get<Lowered>(answer).plan;
    EXPECT_TRUE(check_plan(plan).empty());
    EXPECT_FALSE(runs_overlap(plan));
    EXPECT_TRUE(has_steady_period(plan));
    player::LightClock clock;
    const Result result = replay(plan, cluster, clock, {.granularity = Granularity::Op});
    EXPECT_LT(result.period_s, 0.9 * result.makespan_s);
    EXPECT_GE(result.period_s, busiest_work(result) * (1 - 1e-9));
  }
}

}  // namespace
}  // namespace foreshard::steady_period_test
