// Asynchronous pipelines whose next run begins while this one drains, as plans.
#include <gtest/gtest.h>

#include <algorithm>
#include <set>

#include "core/check/check_plan.h"
#include "core/cluster_file/cluster_file.h"
#include "strategy/schedule/schedule.h"
#include "tests/strategy/support_random_strategy.h"

namespace foreshard::overlapping_runs_test {
namespace {

Model untied_model(int layers) {
  Transformer t = small_transformer(layers);
  t.tied_embeddings = false;
  return {.name = "small", .shape = t};
}

// Slots, places and receives of overlapping runs: check_plan sees each mistake.
TEST(OverlappingRuns, MistakesInOverlappingRunsAreSeen) {
  const Cluster cluster = load_cluster("dgx-a100");
  const auto plan_of = [&](Schedule schedule, int group = 0) {
    return lowered(untied_model(8), cluster,
                   {.dp = 1,
                    .pp = 4,
                    .pipeline = {.schedule = schedule, .microbatch_group = group},
                    .batch = {.micro = 1, .global = 8}})
        .plan;
  };
  const auto rules = [](const Plan& plan) {
    std::set<std::string> found;
    for (const PlanDefect& defect : check_plan(plan)) found.insert(defect.rule);
    return found;
  };
  const Plan dream = plan_of(Schedule::PipeDream), late = plan_of(Schedule::PipeDream2BW, 8);
  EXPECT_EQ(dream.roles[0].ahead,
            (std::vector<std::int32_t>{17, 19, 21}));  // F0 F1 F2, four times F B U, then before the last B U
  EXPECT_EQ(dream.roles[3].ahead.size(), 1U);          // the last rank receives one input ahead
  EXPECT_TRUE(rules(dream).empty());
  EXPECT_TRUE(rules(late).empty());
  const auto forward = [](Plan& plan, std::size_t role, int microbatch) -> Action& {
    return *std::ranges::find_if(plan.roles[role].actions, [&](const Action& action) {
      return !action.does.empty() && action.does[0].work == Work::F && action.does[0].microbatch == microbatch;
    });
  };

  Plan plan = dream;  // the version that another forward reads
  forward(plan, 1, 5).args.back() = forward(plan, 1, 6).args.back();
  EXPECT_TRUE(rules(plan).contains("weight-version"));
  plan = late;  // the copy that keeps the version before the newest is gone
  for (Segment& segment : plan.segments)
    for (Instruction& run : segment.instructions)
      if (run.name == "keep weights") run = {.name = run.name, .what = Mark{}, .stream = run.stream};
  EXPECT_TRUE(rules(plan).contains("weight-version"));
  plan = dream;  // what is sent ahead is received in the next run
  plan.roles[1].ahead.pop_back();
  EXPECT_TRUE(rules(plan).contains("exchange-mismatch"));
  plan = dream;  // a forward before the backward whose place it takes
  plan.roles[0].ahead[2] = plan.roles[0].ahead[1];
  EXPECT_TRUE(rules(plan).contains("double-acquire"));
  plan = dream;  // an activation that no backward of the next run finds
  for (std::size_t a = 0; a < plan.roles[0].actions.size(); ++a)
    if (Action& action = plan.roles[0].actions[a]; !action.does.empty() && action.does[0].microbatch == 7)
      action.args[1] = (action.args[1] + 1) % 4;
  EXPECT_FALSE(rules(plan).empty());
}

// A run of micro-batches that are no multiple of what is in flight has slots for the groups that they are cut into.
TEST(OverlappingRuns, OfAnyLengthAreSound) {
  const Cluster cluster = load_cluster("dgx-a100");
  for (const Schedule schedule : {Schedule::PipeDream, Schedule::PipeDream2BW, Schedule::PipeMare})
    for (int microbatches = 1; microbatches <= 11; ++microbatches)
      for (const int group : {4, microbatches}) {
        Strategy s{.dp = 1,
                   .pp = 4,
                   .pipeline = {.schedule = schedule, .microbatch_group = group},
                   .batch = {.micro = 1, .global = microbatches}};
        if (schedule_entry(schedule).refuse({.p = 4, .m = microbatches, .g = group})) continue;
        const Plan plan = lowered(untied_model(8), cluster, s).plan;
        const auto defects = check_plan(plan);
        ASSERT_TRUE(defects.empty()) << describe(s, defects);
        EXPECT_EQ(runs_overlap(plan), microbatches > 1);
      }
}

}  // namespace
}  // namespace foreshard::overlapping_runs_test
