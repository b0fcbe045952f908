// Every runtime policy that --policy knows: its plans are sound and train the same model as one device.
#include <gtest/gtest.h>

#include "core/check/check_plan.h"
#include "strategy/cost/runtime_policy.h"
#include "tests/exec/training.h"
#include "tests/how_many.h"

namespace foreshard::runtime_policies_test {
namespace {

std::vector<Strategy> with_policy(const RuntimePolicy& policy) {
  std::vector<Strategy> all = {{.dp = 2, .batch = {.micro = 1}},
                               {.dp = 2, .recompute = parse_recompute("full", "test")},
                               {.dp = 4, .communication = {.overlap = Overlap{.gradients = false}}},
                               {.dp = 2, .tp = 2, .sequence_parallel = true},
                               {.dp = 1, .batch = {.micro = 4}},
                               {.dp = 1, .batch = {.micro = 2}, .recompute = parse_recompute("rotor", "test")},
                               {.dp = 2, .recompute = parse_recompute("revolve:2", "test")}};
  if (!policy.keeps()) all.push_back({.dp = 2, .pp = 2, .batch = {.micro = 1}});
  for (Strategy& strategy : all) strategy.policy = policy.name;
  return all;
}

}  // namespace

TEST(RuntimePolicies, PlansAreSound) {
  for (const RuntimePolicy& policy : runtime_policies())
    for (const Strategy& strategy : with_policy(policy)) {
      const Plan plan = lowered(tiny_gpt(), in_double(strategy));
      const auto defects = check_plan(plan);
      EXPECT_TRUE(defects.empty()) << policy.name << ", " << name_of(strategy) << ": " << defects.front().where << ": "
                                   << defects.front().what;
    }
}

// Layers without parameters, and with parameters of very unlike sizes.
TEST(RuntimePolicies, TrainPictures) {
  const Execution plain = run(lowered(tiny_cnn(), in_double({.batch = {.micro = 2}})), training());
  for (const RuntimePolicy& policy : runtime_policies()) {
    const Plan plan = lowered(tiny_cnn(), in_double({.dp = 2, .batch = {.micro = 2}, .policy = policy.name}));
    EXPECT_TRUE(check_plan(plan).empty()) << policy.name;
    EXPECT_LT(difference(plain, run(plan, training())).largest(), 1e-12) << policy.name;
  }
}

TEST(RuntimePolicies, TrainTheSameModel) {
  const Execution plain = run(lowered(tiny_gpt(), in_double({.batch = {.micro = 2}})), training());
  for (const RuntimePolicy& policy : runtime_policies())
    for (const Strategy& strategy : some_of(with_policy(policy), 2)) {
      const Execution own = run(lowered(tiny_gpt(), in_double(strategy)), training());
      const Difference off = difference(plain, own);
      EXPECT_LT(off.largest(), 1e-12) << policy.name << ", " << name_of(strategy) << ", " << off.worst;
    }
}

}  // namespace foreshard::runtime_policies_test
