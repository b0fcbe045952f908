// Stages with degrees of their own train the model of one device: loss, every gradient and every weight after three steps, in double
// precision. Replicas take turns with the micro-batches and tensor groups of different sizes hand activations over.
#include <gtest/gtest.h>

#include <random>

#include "core/check/check_plan.h"
#include "tests/exec/training.h"

namespace foreshard::stages_test {
namespace {

constexpr double kTolerance = 1e-12;

template <class T>
T any(std::mt19937& random, std::initializer_list<T> choices) {
  return choices.begin()[random() % choices.size()];
}

// On at most eight ranks; 8 micro-batches of 1 or 4 of 2. Tied embeddings want the same tensor degree at both ends.
std::optional<Strategy> draw(std::mt19937& random, int layers, int most_tp, bool tied) {
  Strategy s = in_double({.batch = {.micro = any(random, {1, 1, 2})}, .dropout = any(random, {0.0, 0.1})});
  const int count = any(random, {1, 2, 2, 3, 3, 4});
  int ranks = 0, left = layers;
  for (int stage = 0; stage < count; ++stage) {
    StageDegrees degrees{.dp = any(random, {1, 1, 2, 4}), .tp = std::min(most_tp, any(random, {1, 1, 2, 4}))};
    const bool end = stage == 0 || stage + 1 == count;
    const int rest = count - 1 - stage;
    degrees.layers = rest == 0 ? left : static_cast<int>(random() % static_cast<unsigned>(left - std::max(0, rest - 1) + 1));
    if (degrees.layers == 0 && (!end || count == 1 || most_tp == 1)) return {};  // a layer list has nothing but layers
    left -= degrees.layers;
    ranks += degrees.dp * degrees.tp;
    s.stages.push_back(degrees);
  }
  if (tied) s.stages.back().tp = s.stages.front().tp;
  ranks = 0;
  for (const StageDegrees& stage : s.stages) ranks += stage.dp * stage.tp;
  if (ranks < 2 || ranks > 8) return {};
  s.pipeline.schedule = any(random, {Schedule::OneFOneB, Schedule::OneFOneB, Schedule::GPipe});
  s.communication.bucket = any<Bytes>(random, {{0}, {4096}});
  s.recompute = any<Recompute>(random, {{},
                                        {.kind = RecomputeKind::Selective},
                                        {.kind = RecomputeKind::Full},
                                        {.kind = RecomputeKind::Full, .only = {0, 2}},
                                        {.kind = RecomputeKind::Modules, .modules = {"norm", "activation"}}});
  s.optimizer.kind = any(random, {OptimizerKind::Adam, OptimizerKind::Sgd});
  s.optimizer.loss_scale = any(random, {1.0, 1024.0});
  s.communication.overlap.emplace();
  for (const OverlapPart& part : kOverlapParts) *s.communication.overlap.*part.field = any(random, {true, false});
  return s;
}

void expect_equal(const Model& model, const Strategy& strategy) {
  SCOPED_TRACE(model.name + " stages " + to_text(strategy.stages) + " " + name_of(strategy));
  const Plan plan = lowered(model, strategy);
  const auto defects = check_plan(plan);
  ASSERT_TRUE(defects.empty()) << defects[0].rule << " " << defects[0].where << " " << defects[0].what;
  ExecuteOptions options = training();
  options.checks.poison = true;
  Execution done = run(plan, options);
  divide_gradients(done, strategy.optimizer.loss_scale);
  const Strategy one =
      in_double({.batch = {.micro = 2}, .dropout = strategy.dropout, .optimizer = {.kind = strategy.optimizer.kind}});
  const Difference apart = difference(done, run(lowered(model, one), training()));
  EXPECT_LE(apart.loss, kTolerance);
  EXPECT_LE(apart.gradients, kTolerance) << apart.worst;
  EXPECT_LE(apart.values, kTolerance) << apart.worst;
}

void compare_drawn(const Model& model, int layers, int most_tp, bool tied, int count, unsigned seed) {
  std::mt19937 random(seed);
  for (int done = 0; done < count;) {
    const auto strategy = draw(random, layers, most_tp, tied);
    if (!strategy) continue;
    expect_equal(model, *strategy);
    ++done;
  }
}

TEST(Stages, DrawnGpt) { compare_drawn(tiny_gpt(), 4, 4, true, 10, 21); }
TEST(Stages, DrawnGptUntied) { compare_drawn(tiny_gpt(false), 4, 4, false, 10, 22); }
TEST(Stages, DrawnLlama) { compare_drawn(tiny_llama(), 4, 4, false, 10, 23); }
TEST(Stages, DrawnBert) { compare_drawn(tiny_bert(), 4, 4, true, 6, 24); }
TEST(Stages, DrawnPerceptron) { compare_drawn(tiny_mlp(), 4, 1, false, 8, 25); }

// The largest group in the middle, so that both ways of handing over are there, and replicas that share no common turn.
TEST(Stages, EveryWayOfHandingOver) {
  Strategy s = in_double({.batch = {.micro = 1, .global = 12}});
  s.stages = {{.layers = 1, .dp = 2, .tp = 1}, {.layers = 2, .dp = 1, .tp = 4}, {.layers = 1, .dp = 1, .tp = 2}};
  const Plan plan = lowered(tiny_llama(), s);
  ASSERT_TRUE(check_plan(plan).empty());
  const Execution one = run(lowered(tiny_llama(), in_double({.batch = {.micro = 2, .global = 12}})), training());
  EXPECT_LE(difference(run(plan, training()), one).largest(), kTolerance);
  s.stages = {{.layers = 1, .dp = 3, .tp = 1}, {.layers = 1, .dp = 2, .tp = 1}, {.layers = 2, .dp = 1, .tp = 2}};
  EXPECT_LE(difference(run(lowered(tiny_llama(), s), training()), one).largest(), kTolerance);
}

}  // namespace
}  // namespace foreshard::stages_test
