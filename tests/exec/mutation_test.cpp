// The comparison with one device sees every kind of mistake: each mutant of a right plan differs by far more than 1e-12.
#include <gtest/gtest.h>

#include <cmath>

#include "core/check/check_plan.h"
#include "strategy/lower/loss_scale.h"
#include "tests/exec/training.h"

namespace foreshard::mutation_test {
namespace {

struct Mutants : testing::Test {
  static const Execution& one() {
    static const Execution execution = run(lowered(tiny_gpt(), in_double({.batch = {.micro = 2}})), training(2));
    return execution;
  }
  static Difference apart(const Plan& plan) { return difference(run(plan, training(2)), one()); }

  // Instructions of the named kind in all segments.
  template <class Change>
  static int change_all(Plan& plan, const std::string& name, Change change) {
    int count = 0;
    for (Segment& segment : plan.segments)
      for (Instruction& instruction : segment.instructions)
        if (instruction.name == name) change(instruction), ++count;
    return count;
  }
  static Plan split() {
    return lowered(
        tiny_gpt(),
        in_double(
            {.dp = 2, .tp = 2, .pp = 2, .batch = {.micro = 1}, .communication = {.overlap = Overlap{.gradients = false}}}));
  }
};

TEST_F(Mutants, TheRightPlanIsEqual) { EXPECT_LE(apart(split()).largest(), 1e-12); }

TEST_F(Mutants, ATensorParallelSumIsDropped) {
  Plan plan = split();
  ASSERT_GT(change_all(plan, "fc2_reduce", [](Instruction& i) { i.what = Mark{}; }), 0);
  EXPECT_GT(apart(plan).loss, 1e-6);
}

TEST_F(Mutants, ATensorParallelGradientSumIsDropped) {
  Plan plan = split();
  ASSERT_GT(change_all(plan, "qkv_grad", [](Instruction& i) { i.what = Mark{}; }), 0);
  EXPECT_GT(apart(plan).gradients, 1e-3);
}

// check_plan refuses it; run all the same, the replicas drift apart.
TEST_F(Mutants, GradientsAreNotSynchronised) {
  Plan plan = split();
  ASSERT_GT(change_all(plan, "all-reduce gradients", [](Instruction& i) { i.what = Mark{}; }), 0);
  bool found = false;
  for (const PlanDefect& defect : check_plan(plan)) found = found || defect.rule == "gradient-not-reduced";
  EXPECT_TRUE(found);
  const Execution done = run(plan, training(2));
  double drift = 0;
  for (const WholeTensor& tensor : done.values) drift = std::max(drift, tensor.largest_difference);
  EXPECT_GT(drift, 1e-6);
}

TEST_F(Mutants, TheTiedEmbeddingsAreNotSummed) {
  Plan plan = split();
  ASSERT_GT(change_all(plan, "sum of tied embeddings", [](Instruction& i) { i.what = Mark{}; }), 0);
  EXPECT_GT(apart(plan).gradients, 1e-3);
}

// The first stage takes the samples of the micro-batch after the one that the last stage computes the loss of.
TEST_F(Mutants, AMicroBatchIsShifted) {
  Plan plan = split();
  int changed = 0;
  for (Action& action : plan.roles[0].actions) {
    if (action.does.empty() || action.does[0].work != Work::F) continue;
    action.args[0] = (action.args[0] + 1) % plan.microbatches;
    ++changed;
  }
  ASSERT_EQ(changed, plan.microbatches);
  EXPECT_GT(apart(plan).loss, 1e-6);
}

TEST_F(Mutants, AScaleIsWrong) {
  Plan plan = split();
  ASSERT_GT(change_all(plan, "softmax",
                       [](Instruction& i) {
                         auto& what = std::get<Compute>(i.what);
                         std::get<ops::Softmax>(what.op).scale = 0.2501;  // instead of 0.25 = 1 / sqrt(16)
                       }),
            0);
  EXPECT_GT(apart(plan).gradients, 1e-9);
}

// The mean over two replicas instead of the sum.
TEST_F(Mutants, GradientsAreAveragedTwice) {
  Plan plan = split();
  ASSERT_GT(
      change_all(plan, "all-reduce gradients", [](Instruction& i) { std::get<Collective>(i.what).combine = Combine::Mean; }),
      0);
  EXPECT_GT(apart(plan).gradients, 0.1);
}

// The backward of the second micro-batch writes where it should add.
TEST_F(Mutants, GradientsAreOverwritten) {
  Plan plan = split();
  ASSERT_GT(change_all(plan, "fc1",
                       [](Instruction& i) {
                         auto& what = std::get<Compute>(i.what);
                         if (what.phase == Phase::WeightGrad) what.accumulate = false;
                       }),
            0);
  EXPECT_GT(apart(plan).gradients, 1e-3);
}

// Each rank clips by the norm of what it holds itself.
TEST_F(Mutants, TheNormIsNotSummed) {
  const Strategy clipped = in_double({.batch = {.micro = 2}, .optimizer = {.clip_norm = 0.01}});
  const Execution one = run(lowered(tiny_gpt(), clipped), training(2));
  Plan plan = lowered(tiny_gpt(), in_double({.tp = 2, .pp = 2, .batch = {.micro = 2}, .optimizer = {.clip_norm = 0.01}}));
  EXPECT_LE(difference(run(plan, training(2)), one).largest(), 1e-12);
  ASSERT_GT(change_all(plan, "sum of norms", [](Instruction& i) { i.what = Mark{}; }), 0);
  EXPECT_GT(difference(run(plan, training(2)), one).gradients, 1e-3);
}

// The update forgets that gradients carry a scale.
TEST_F(Mutants, TheLossScaleIsNotTakenOut) {
  Plan plan =
      with_loss_scale(lowered(tiny_gpt(), in_double({.batch = {.micro = 2}, .optimizer = {.kind = OptimizerKind::Sgd}})), 256);
  const Execution right = run(plan, training(2));
  ASSERT_GT(change_all(plan, "sgd", [](Instruction& i) { std::get<Compute>(i.what).loss_scale = 1; }), 0);
  const Execution wrong = run(plan, training(2));
  EXPECT_GT(std::abs(wrong.steps[1].loss - right.steps[1].loss), 1e-6);
}

// The first bucket of one segment keeps the weights of before the update.
TEST_F(Mutants, AnUpdateIsMissing) {
  Plan plan = split();
  int count = 0;
  for (Segment& segment : plan.segments)
    for (Instruction& instruction : segment.instructions)
      if (instruction.name == "adam" && count++ == 0) instruction.what = Mark{};
  ASSERT_GT(count, 1);
  EXPECT_GT(apart(plan).values, 1e-6);
}

// The other ranks never hear of an update.
TEST_F(Mutants, AStaleWeight) {
  Plan plan = lowered(tiny_gpt(), in_double({.dp = 2, .batch = {.micro = 1}, .zero = {.stage = 1}}));
  ASSERT_GT(change_all(plan, "all-gather parameters", [](Instruction& i) { i.what = Mark{}; }), 0);
  EXPECT_GT(apart(plan).loss, 1e-9);
}

}  // namespace
}  // namespace foreshard::mutation_test
