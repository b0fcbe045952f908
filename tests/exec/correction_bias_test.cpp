// Correction biases of routers (strategy/state/correction_bias.h): they follow the counts of all ranks, and are part of checkpoints.
#include "strategy/state/correction_bias.h"

#include <gtest/gtest.h>

#include <cmath>
#include <map>
#include <numeric>

#include "core/check/check_plan.h"
#include "tests/exec/checkpoint_folder.h"
#include "tests/exec/mixture_models.h"
#include "tests/exec/training.h"

namespace foreshard::correction_bias_test {
namespace {

struct CorrectionBias : CheckpointFolder {};

constexpr double kSpeed = 0.05;  // scores differ by less, so that the choice changes after a step

Model biased_model() {
  for (ModernModel which : mixtures())
    if (which.name == "deepseek_v3") {
      const auto with = which.with;
      which.with = [with](Transformer& t) {
        with(t);
        t.block.experts.correction_bias = true, t.block.experts.bias_speed = kSpeed;
      };
      return modern_model(which);
    }
  return {};
}

Plan biased(Strategy strategy) {
  strategy.batch.micro = 1;
  strategy.experts.load = {.kind = ExpertLoad::Kind::Worst};
  const Plan plan = lowered(biased_model(), in_double(strategy));
  const auto defects = check_plan(plan);
  EXPECT_TRUE(defects.empty()) << defects[0].rule << " " << defects[0].where << " " << defects[0].what;
  return plan;
}

using Biases = std::map<std::string, std::vector<double>>;  // by layer

Biases biases_of(const Execution& execution) {
  Biases all;
  for (std::size_t t = 0; t < execution.values.size(); ++t) {
    const std::string& name = execution.result.plan.tensors[t].name;
    if (const std::size_t end = name.find(".router.correction_bias"); end != std::string::npos)
      all[name.substr(0, end)] = execution.values[t].elements;
  }
  return all;
}

// Algorithm 1 of arXiv:2408.15664 from the loads that the run reports after each step.
TEST_F(CorrectionBias, FollowsTheCountsOfEachStep) {
  const Execution run_of = run(biased({.dp = 2, .experts = {.ep = 2}}), training(4));
  ASSERT_EQ(run_of.routers.size(), 3u);  // layers 1 to 3
  Biases expected;
  for (const StepReport& step : run_of.steps)
    for (std::size_t r = 0; r < run_of.routers.size(); ++r) {
      const std::vector<double>& loads = step.experts.loads[r];
      std::vector<double>& bias = expected[run_of.routers[r].layer];
      bias.resize(loads.size());
      const double mean = std::accumulate(loads.begin(), loads.end(), 0.0) / static_cast<double>(loads.size());
      for (std::size_t e = 0; e < loads.size(); ++e) bias[e] += loads[e] < mean ? kSpeed : loads[e] > mean ? -kSpeed : 0;
    }
  const Biases found = biases_of(run_of);
  ASSERT_EQ(found.size(), expected.size());
  for (const auto& [layer, bias] : expected) {
    ASSERT_TRUE(found.contains(layer)) << layer;
    for (std::size_t e = 0; e < bias.size(); ++e) EXPECT_NEAR(found.at(layer)[e], bias[e], 1e-15) << layer << " " << e;
  }
}

TEST_F(CorrectionBias, EveryStrategyTrainsAsOneDevice) {
  const Execution one = run(biased({}), training(4));
  for (const Strategy& strategy :
       {Strategy{.dp = 4, .experts = {.ep = 2}, .zero = {.stage = 1}},
        Strategy{.dp = 2, .tp = 2, .experts = {.ep = 4}, .sequence_parallel = true},
        Strategy{.dp = 2, .cp = 2, .experts = {.ep = 4}},
        Strategy{.dp = 2, .pp = 2, .experts = {.ep = 2}, .recompute = {.kind = RecomputeKind::Full}},
        Strategy{.dp = 2, .pp = 2, .experts = {.ep = 2}, .pipeline = {.schedule = Schedule::DualPipe}}}) {
    const Difference apart = difference(run(biased(strategy), training(4)), one);
    EXPECT_LE(std::max(apart.loss, apart.values), 1e-12)
        << name_of(strategy) << ": " << apart.worst;  // biases have no gradients
  }
}

// Two steps and two more, from a checkpoint and under another split, are four steps.
TEST_F(CorrectionBias, IsPartOfACheckpoint) {
  const Execution whole = run(biased({}), training(4));
  ExecuteOptions first = training(2), second = training(2);
  first.save = second.resume = file("biases");
  run(biased({.dp = 2, .experts = {.ep = 2}}), first);
  const Execution rest = run(biased({.dp = 4, .experts = {.ep = 4}}), second);
  EXPECT_NEAR(rest.steps.back().loss, whole.steps.back().loss, 1e-12);
  const Biases found = biases_of(rest);
  for (const auto& [layer, bias] : biases_of(whole)) EXPECT_EQ(found.at(layer), bias) << layer;
}

// Without pipeline flushes there is no moment at which all counts of a step are there.
TEST_F(CorrectionBias, NotWithoutFlushes) {
  const Plan plan = biased({.pp = 2, .pipeline = {.schedule = Schedule::PipeDream}});
  for (const Tensor& tensor : plan.tensors) EXPECT_EQ(tensor.name.find("correction_bias"), std::string::npos);
}

}  // namespace
}  // namespace foreshard::correction_bias_test
