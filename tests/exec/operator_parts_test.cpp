// Operators that run in parts along the samples train what whole ones train: loss, gradients and weights after three steps in double
// precision are those of the run that is not cut, and of one device.
#include <gtest/gtest.h>

#include <random>

#include "core/check/check_plan.h"
#include "tests/exec/training.h"
#include "tests/how_many.h"

namespace foreshard::operator_parts_test {
namespace {

void expect_alike(const Execution& a, const Execution& b) {
  const Difference apart = difference(a, b);
  EXPECT_LE(apart.loss, 1e-12);
  EXPECT_LE(apart.gradients, 1e-12) << apart.worst;
  EXPECT_LE(apart.values, 1e-12) << apart.worst;
}

std::size_t instructions(const Plan& plan) {
  std::size_t count = 0;
  for (const Segment& segment : plan.segments) count += segment.instructions.size();
  return count;
}

void compare(const Model& model, Strategy strategy) {
  SCOPED_TRACE(model.name + " " + name_of(strategy) + " parts " + ::testing::PrintToString(strategy.communication.parts));
  strategy = in_double(strategy);
  const Plan plan = lowered(model, strategy);
  const auto defects = check_plan(plan);
  ASSERT_TRUE(defects.empty()) << defects[0].rule << " " << defects[0].where << " " << defects[0].what;
  Strategy whole = strategy, one = in_double({.batch = {.micro = 2}, .dropout = strategy.dropout});
  whole.communication.parts.clear();
  one.optimizer = strategy.optimizer;
  const Plan not_cut = lowered(model, whole);
  ASSERT_GT(instructions(plan), instructions(not_cut) + 20);
  ExecuteOptions options = training();
  options.checks.poison = true;
  const Execution done = run(plan, options);
  expect_alike(done, run(not_cut, options));
  expect_alike(done, run(lowered(model, one), training()));
}

TEST(OperatorParts, Gpt) {
  compare(tiny_gpt(), {.tp = 2, .batch = {.micro = 4}, .communication = {.parts = {2}}});
  compare(tiny_gpt(), {.tp = 2, .batch = {.micro = 4}, .communication = {.parts = {2, 4}}});
  compare(tiny_gpt(), {.dp = 2, .tp = 2, .pp = 2, .batch = {.micro = 2}, .communication = {.parts = {2, 1}}});
  compare(tiny_gpt(), {.tp = 4, .batch = {.micro = 8}, .communication = {.parts = {1, 8}}});
  compare(tiny_gpt(), {.tp = 2, .batch = {.micro = 4}, .communication = {.parts = {1, 2, 4, 1, 2, 2}}});
  compare(tiny_gpt(), {.dp = 2, .tp = 2, .pp = 2, .batch = {.micro = 4}, .communication = {.parts = {2, 1, 1, 1, 4, 2}}});
}

TEST(OperatorParts, OtherFamilies) {
  compare(tiny_llama(), {.tp = 2, .batch = {.micro = 4}, .communication = {.parts = {4, 2}}});
  compare(tiny_llama(), {.tp = 2, .pp = 2, .batch = {.micro = 2}, .communication = {.parts = {2}}});
  compare(tiny_bert(), {.tp = 2, .batch = {.micro = 4}, .dropout = 0.1, .communication = {.parts = {2, 4}}});
  compare(tiny_bert(), {.tp = 2, .pp = 2, .batch = {.micro = 2}, .communication = {.parts = {2}}});
}

// The rows of kept tokens: every sample keeps its own, so the parts of a micro-batch keep what the whole one keeps.
TEST(OperatorParts, WithKeptTokens) {
  for (const std::vector<int>& parts : std::vector<std::vector<int>>{{2}, {4, 2}, {1, 4}}) {
    Strategy strategy = in_double({.tp = 2, .batch = {.micro = 4}, .communication = {.parts = parts}});
    strategy.communication.activations = {.tokens = 0.5};
    const Plan plan = lowered(tiny_gpt(), strategy);
    const auto defects = check_plan(plan);
    ASSERT_TRUE(defects.empty()) << defects[0].rule << " " << defects[0].where << " " << defects[0].what;
    strategy.communication.parts.clear();
    const Plan not_cut = lowered(tiny_gpt(), strategy);
    ASSERT_GT(instructions(plan), instructions(not_cut) + 20);
    ExecuteOptions options = training();
    options.checks.poison = true;
    expect_alike(run(plan, options), run(not_cut, options));
  }
}

TEST(OperatorParts, Drawn) {
  std::mt19937 random(24);
  const auto any = [&]<class T>(std::initializer_list<T> choices) { return choices.begin()[random() % choices.size()]; };
  const auto mixed = [&] {
    Strategy s{.dp = any({1, 2}), .tp = any({2, 4}), .pp = any({1, 2}), .dropout = any({0.0, 0.1})};
    s.batch.micro = any({2, 4});
    s.sequence_parallel = any({true, false});
    s.pipeline.schedule = any({Schedule::GPipe, Schedule::OneFOneB, Schedule::ZeroBubbleH1});
    s.zero.stage = s.pipeline.schedule == Schedule::ZeroBubbleH1 ? any({0, 1}) : any({0, 1, 2, 3});
    s.recompute = any(std::initializer_list<Recompute>{{},
                                                       {.kind = RecomputeKind::Selective},
                                                       {.kind = RecomputeKind::Full},
                                                       {.kind = RecomputeKind::Modules, .modules = {"norm", "activation"}}});
    s.optimizer.clip_norm = any({0.0, 0.01});
    s.communication.overlap.emplace();
    for (const OverlapPart& part : kOverlapParts) *s.communication.overlap.*part.field = any({true, false});
    s.communication.parts =
        s.batch.micro == 2 ? any(std::initializer_list<std::vector<int>>{{2}, {1, 2}, {2, 1}})
                           : any(std::initializer_list<std::vector<int>>{{4}, {2}, {4, 2}, {2, 4}, {1, 4}, {2, 4, 1, 2, 4, 1}});
    return s;
  };
  for (int i = 0; i < how_many(6, 24);) {
    const Strategy s = mixed();
    if (s.dp * s.tp * s.pp > 8 || (s.pipeline.schedule == Schedule::ZeroBubbleH1 && s.pp == 1)) continue;
    compare(i % 2 ? tiny_gpt(s.dropout == 0) : tiny_llama(), s);
    ++i;
  }
}

}  // namespace
}  // namespace foreshard::operator_parts_test
