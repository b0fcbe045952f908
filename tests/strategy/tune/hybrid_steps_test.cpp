// Steps between stages, and a walk over them with a judge whose optimum is known.
#include "strategy/tune/hybrid_steps.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

namespace foreshard::hybrid_steps_test {
namespace {

using Stages = std::vector<StageDegrees>;

// Two layers each way over the border; stage 0: two replicas, or two tensor ranks; one rank each can only be doubled; joined with the
// degrees of either (equal) and with both replicas; no stage of one replica can be cut.
TEST(HybridSteps, OfTwoSmallStages) {
  const std::vector<Stages> steps = one_step({{3, 1, 1}, {2, 1, 1}}, 4);
  const auto leads_to = [&](const Stages& stages) { return std::ranges::find(steps, stages) != steps.end(); };
  for (const Stages& stages : std::vector<Stages>{{{2, 1, 1}, {3, 1, 1}},
                                                  {{4, 1, 1}, {1, 1, 1}},
                                                  {{3, 2, 1}, {2, 1, 1}},
                                                  {{3, 1, 2}, {2, 1, 1}},
                                                  {{3, 1, 1}, {2, 2, 1}},
                                                  {{3, 1, 1}, {2, 1, 2}},
                                                  {{5, 1, 1}},
                                                  {{5, 2, 1}}})
    EXPECT_TRUE(leads_to(stages)) << to_text(stages);
  EXPECT_EQ(steps.size(), 9u);  // joined as either of two equal ones
  EXPECT_TRUE(one_step({{1, 1, 1}}, 1).empty());
}

TEST(HybridSteps, KeepLayersAndDevices) {
  Stages stages = {{7, 4, 2}, {5, 2, 4}, {1, 8, 1}};
  for (const Stages& step : one_step(stages, 28)) {
    int layers = 0, ranks = 0;
    for (const StageDegrees& stage : step) {
      EXPECT_GE(stage.layers, 1);
      EXPECT_GE(std::min(stage.dp, stage.tp), 1);
      layers += stage.layers, ranks += stage.dp * stage.tp;
    }
    EXPECT_EQ(layers, 13);
    EXPECT_LE(ranks, 28);
  }
}

// The slowest stage of 12 equal layers and a last one as heavy as twelve, on four ranks without tensor parallelism: two replicas for each
// half of the work, 6 each, and a tenth of both. From even stages to the optimum; some stages cannot be.
TEST(HybridSteps, WalkToTheOptimum) {
  const auto seconds = [](const Stages& stages) -> std::optional<double> {
    double slowest = 0, sum = 0;
    int layer = 0;
    for (const StageDegrees& stage : stages) {
      if (stage.tp > 1) return {};
      double work = 0;
      for (int i = 0; i < stage.layers; ++i) work += layer++ == 12 ? 12 : 1;
      const double seconds = work / stage.dp + (stage.dp > 2 ? 10 : 0);  // many replicas are dear
      slowest = std::max(slowest, seconds), sum += seconds;
    }
    return slowest + sum / 10;
  };
  const JudgeStages judge = [&](const std::vector<Stages>& all) {
    std::vector<std::optional<double>> each;
    for (const Stages& stages : all) each.push_back(seconds(stages));
    return each;
  };
  const Stages start = {{7, 1, 1}, {6, 1, 1}};
  for (const int at_once : {1, 4, 100}) {
    const Stepped found = step_by_step(start, *seconds(start), {.devices = 4, .most = 1000, .at_once = at_once}, judge);
    EXPECT_NEAR(found.seconds, 7.2, 1e-12) << at_once;
    EXPECT_EQ(found.stages, (Stages{{12, 2, 1}, {1, 2, 1}})) << at_once;
  }
  const Stepped short_walk = step_by_step(start, *seconds(start), {.devices = 4, .most = 3}, judge);
  EXPECT_EQ(short_walk.judged, 3);
  EXPECT_LE(short_walk.seconds, *seconds(start));
  EXPECT_EQ(step_by_step(start, 1, {.devices = 4, .most = 1000}, judge).stages, start) << "nothing is better";
}

// Of a batch the best, not the first that is better: the others are not judged again.
TEST(HybridSteps, TheBestOfABatchIsTaken) {
  const Stages start = {{6, 1, 1}, {7, 1, 1}};
  const auto seconds = [&](const Stages& stages) -> double {
    return stages == start ? 10 : stages.front().layers == 7 ? 5 : 8;
  };
  const Stepped found =
      step_by_step(start, 10, {.devices = 2, .most = 1000, .at_once = 100}, [&](const std::vector<Stages>& all) {
        std::vector<std::optional<double>> each;
        for (const Stages& stages : all) each.push_back(seconds(stages));
        return each;
      });
  EXPECT_EQ(found.seconds, 5);
}

}  // namespace
}  // namespace foreshard::hybrid_steps_test
