// zb-2p without --schedule-times: tune takes the medians of a trial plan, and the plan runs the lists for them.
#include <gtest/gtest.h>

#include "core/check/check_plan.h"
#include "core/cluster_file/cluster_file.h"
#include "core/strategy/strategy_options.h"
#include "strategy/estimate/estimate.h"
#include "strategy/resolve/resolve.h"
#include "strategy/schedule/schedule.h"
#include "strategy/tune/tune.h"

namespace foreshard::schedule_times_test {

static Strategy strategy_of(const std::string& times) {
  Strategy s{.dp = 1, .pp = 4, .batch = {.micro = 1, .global = 16, .seq = 1024}};
  s.pipeline.schedule = Schedule::ZeroBubble2p;
  s.communication.overlap = Overlap{.p2p = true};
  set_option(s, "schedule_times", times, "test");
  return s;
}

static std::string ran(const Plan& plan, std::size_t rank) {
  std::string text;
  for (const Action& action : plan.roles[rank].actions)
    for (const Does& does : action.does)
      if (does.work != Work::Update)
        text += (text.empty() ? "" : " ") + to_text(ScheduleOp{does.work, does.stage, does.microbatch});
  return text;
}

TEST(ScheduleTimes, AreThoseOfTheStages) {
  const Model model = load_model("gpt2-355m");
  const Cluster cluster = load_cluster("dgx-a100");
  const Strategy open = strategy_of("auto");
  EXPECT_TRUE(chooses_times(open));
  const Strategy tuned = std::get<Tuned>(tune(model, cluster, open)).strategy;
  EXPECT_FALSE(chooses_times(tuned));
  ASSERT_TRUE(tuned.pipeline.times.has_value());
  const Lowered lowered = std::get<Lowered>(tuned_plan(model, cluster, open));
  EXPECT_EQ(lowered.strategy.pipeline.times, tuned.pipeline.times);
  // The two stages in the middle are equal: six layers each, more than the embedding takes.
  const StageDurations middle = stage_durations(lowered.plan, cluster)[1];
  EXPECT_NEAR(tuned.pipeline.times->forward / middle.forward, 1, 1e-9);
  EXPECT_NEAR(tuned.pipeline.times->input_grad / (middle.backward - middle.weights), 1, 1e-9);
  EXPECT_NEAR(tuned.pipeline.times->weight_grad / middle.weights, 1, 1e-9);
  EXPECT_NEAR(tuned.pipeline.times->transfer / middle.hop, 1, 1e-9);
  const ScheduleLists lists = schedule_entry(Schedule::ZeroBubble2p).lists({.p = 4, .m = 16, .times = *tuned.pipeline.times});
  for (std::size_t rank = 0; rank < 4; ++rank) EXPECT_EQ(ran(lowered.plan, rank) + "\n", to_text(ScheduleLists{lists[rank]}));
  EXPECT_TRUE(check_plan(lowered.plan).empty());
  EXPECT_EQ(parse_strategy(to_json(tuned), "saved"), tuned);
}

TEST(ScheduleTimes, ThatAreGivenStay) {
  const Model model = load_model("gpt2-355m");
  const Cluster cluster = load_cluster("dgx-a100");
  const Strategy given = strategy_of("3,3,1,0");
  EXPECT_FALSE(chooses_times(given));
  const Lowered lowered = std::get<Lowered>(tuned_plan(model, cluster, given));
  EXPECT_EQ(lowered.strategy.pipeline.times, (ActionTimes{3, 3, 1, 0}));
  const Lowered other = std::get<Lowered>(tuned_plan(model, cluster, strategy_of("1,1,1,0")));
  EXPECT_NE(ran(lowered.plan, 1), ran(other.plan, 1));
}

TEST(ScheduleTimes, OfOneRankAreNotLookedFor) {
  Strategy one = strategy_of("auto");
  one.pp = 1;
  EXPECT_FALSE(chooses_times(one));
}

}  // namespace foreshard::schedule_times_test
