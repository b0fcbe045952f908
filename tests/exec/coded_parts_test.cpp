// Operators in parts whose tensor-parallel sums are sent as codes. Where operators are cut, each of the g groups of samples (g: the least
// common multiple of the numbers of parts) is encoded by itself, with borders of its own. So a micro-batch of b samples in parts sends the
// same codes, and trains the same model, as g micro-batches of b / g samples that are not cut.
#include <gtest/gtest.h>

#include <numeric>
#include <random>

#include "core/check/check_plan.h"
#include "tests/exec/training.h"
#include "tests/how_many.h"

namespace foreshard::coded_parts_test {
namespace {

int groups_of(const Strategy& strategy) {
  int groups = 1;
  for (const int n : strategy.communication.parts) groups = std::lcm(groups, n);
  return groups;
}

Strategy coded(Strategy strategy, std::vector<int> parts, int bits, int segments = 0) {
  strategy = in_double(strategy);
  strategy.communication.parts = std::move(parts);
  strategy.communication.activations = {.codec = Codec::Segmented, .bits = bits, .segments = segments};
  return strategy;
}

void expect_alike(const Difference& apart) {
  EXPECT_LE(apart.loss, 1e-12);
  EXPECT_LE(apart.gradients, 1e-12) << apart.worst;
  EXPECT_LE(apart.values, 1e-12) << apart.worst;
}

void compare(const Model& model, const Strategy& strategy) {
  SCOPED_TRACE(model.name + " " + name_of(strategy) + " parts " + ::testing::PrintToString(strategy.communication.parts) +
               " bits " + std::to_string(strategy.communication.activations.bits));
  const Plan plan = lowered(model, strategy);
  const auto defects = check_plan(plan);
  ASSERT_TRUE(defects.empty()) << defects[0].rule << " " << defects[0].where << " " << defects[0].what;
  Strategy whole = strategy, smaller = strategy;
  whole.communication.parts.clear(), smaller.communication.parts.clear();
  smaller.batch.micro /= groups_of(strategy);
  ExecuteOptions options = training(2);
  options.checks.poison = true;
  const Execution done = run(plan, options);
  expect_alike(difference(done, run(lowered(model, smaller), options)));
  EXPECT_GT(difference(done, run(lowered(model, whole), options)).gradients, 1e-6);  // which encodes all samples together
}

TEST(CodedParts, EachGroupOfSamplesIsEncodedByItself) {
  for (const int bits : some_of<int>({4, 8}, 1)) {
    compare(tiny_gpt(), coded({.tp = 2, .batch = {.micro = 4}}, {2}, bits));
    compare(tiny_gpt(), coded({.tp = 2, .batch = {.micro = 4}}, {4}, bits));
    compare(tiny_gpt(), coded({.dp = 2, .tp = 2, .pp = 2, .batch = {.micro = 2}}, {2, 1}, bits));
  }
  compare(tiny_gpt(), coded({.tp = 4, .batch = {.micro = 8}}, {1, 8}, 8));
  compare(tiny_gpt(), coded({.tp = 2, .batch = {.micro = 4}}, {4, 2}, 4, 8));
  compare(tiny_gpt(), coded({.tp = 2, .batch = {.micro = 4}}, {1, 2, 4, 1, 2, 2}, 8));
  compare(tiny_llama(), coded({.tp = 2, .batch = {.micro = 4}}, {2, 4}, 8));
  compare(tiny_llama(), coded({.tp = 2, .pp = 2, .batch = {.micro = 2}}, {2}, 4));
}

TEST(CodedParts, Drawn) {
  std::mt19937 random(2024);
  const auto any = [&]<class T>(std::initializer_list<T> choices) { return choices.begin()[random() % choices.size()]; };
  for (int i = 0; i < how_many(3, 10);) {
    Strategy s{.dp = any({1, 2}), .tp = any({2, 4}), .pp = any({1, 2}), .dropout = any({0.0, 0.1})};
    s.batch.micro = any({2, 4});
    s.pipeline.schedule = any({Schedule::GPipe, Schedule::OneFOneB, Schedule::ZeroBubbleH1});
    s.zero.stage = s.pipeline.schedule == Schedule::ZeroBubbleH1 ? any({0, 1}) : any({0, 1, 2, 3});
    s.recompute = any(std::initializer_list<Recompute>{{}, {.kind = RecomputeKind::Selective}, {.kind = RecomputeKind::Full}});
    s.communication.overlap.emplace();
    for (const OverlapPart& part : kOverlapParts) *s.communication.overlap.*part.field = any({true, false});
    const std::vector<int> parts = s.batch.micro == 2
                                       ? any(std::initializer_list<std::vector<int>>{{2}, {1, 2}, {2, 1}})
                                       : any(std::initializer_list<std::vector<int>>{{4}, {2}, {4, 2}, {2, 4, 1, 2, 4, 1}});
    if (s.dp * s.tp * s.pp > 8 || (s.pipeline.schedule == Schedule::ZeroBubbleH1 && s.pp == 1)) continue;
    compare(i % 2 ? tiny_gpt(s.dropout == 0) : tiny_llama(), coded(s, parts, any({4, 8})));
    ++i;
  }
}

}  // namespace
}  // namespace foreshard::coded_parts_test
