// Whole models on one rank: the gradient of every parameter against finite differences of the loss, and learning.
#include <gtest/gtest.h>

#include <cmath>

#include "tests/exec/host_model.h"

namespace foreshard::host_model_test {
namespace {

// Weights of usual size give tiny gradients in tiny models; ten times larger ones make every path count.
void enlarge(ModelRun& run) {
  for (auto& [name, weights] : run.parameters)
    if (!name.ends_with("norm.weight"))
      for (std::int64_t i = 0; i < weights.size(); ++i) weights.set(i, 10 * weights.at(i));
}

// The quotient of fourth order, because a small model with large weights bends strongly; near 2e-16 / h in the loss is lost to
// rounding.
double gradient_error(ModelRun& run, const std::string& name) {
  const Array x = run.parameters.at(name), g = run.gradients.at(name), d = random_array(x.size(), 77);
  const auto loss_at = [&](double h) {
    for (std::int64_t i = 0; i < x.size(); ++i) run.parameters.at(name).set(i, x.at(i) + h * d.at(i));
    return run.forward();
  };
  constexpr double h = 2e-6;
  const double quotient = (8 * (loss_at(h) - loss_at(-h)) - (loss_at(2 * h) - loss_at(-2 * h))) / (12 * h);
  run.parameters.at(name) = x;
  double expected = 0, size = 0;
  for (std::int64_t i = 0; i < x.size(); ++i) {
    expected += g.at(i) * d.at(i);
    size += g.at(i) * g.at(i) * d.at(i) * d.at(i);
  }
  return std::abs(quotient - expected) / (std::sqrt(size) + 1e-6);
}

TEST(HostModel, EveryParameterAgainstFiniteDifferences) {
  for (const GraphCase& test : graph_cases(DType::F64)) {
    ModelRun run = make_model_run(test.model, test.sharding, arguments_of(test), 1);
    enlarge(run);
    EXPECT_GT(run.forward(), 0) << test.name;
    run.backward();
    EXPECT_EQ(run.gradients.size(), run.parameters.size()) << test.name;
    for (const auto& [name, gradient] : run.gradients) EXPECT_LT(gradient_error(run, name), 1e-6) << test.name << ", " << name;
  }
}

// Two samples, the same in every step: Adam has to learn them by heart.
TEST(HostModel, LearnsItsSamples) {
  for (const GraphCase& test : graph_cases(DType::F32)) {
    if (test.sharding.dropout > 0 || test.name.find("sum of squares") != std::string::npos) continue;
    ModelRun run = make_model_run(test.model, test.sharding, arguments_of(test), 1);
    std::map<std::string, std::pair<Array, Array>> moments;
    for (const auto& [name, weights] : run.parameters)
      moments[name] = {Array(weights.size(), DType::F32), Array(weights.size(), DType::F32)};
    const double before = run.forward();
    for (std::int64_t step = 1; step <= 60; ++step) {
      run.forward();
      run.backward();
      for (auto& [name, weights] : run.parameters) {
        auto& [m, v] = moments[name];
        const std::vector<Operand> states = {m.operand(), v.operand(), weights.operand()};
        std::vector<Operand> reads = states;
        reads.insert(reads.begin(), run.gradients.at(name).operand());
        run_compute({.op = ops::Adam{}, .phase = Phase::Update, .shapes = {{{weights.size()}, DType::F32}}}, reads, states,
                    {.step = step, .optimizer = {.learning_rate = 0.01}});
      }
    }
    EXPECT_LT(run.forward(), before / 2) << test.name;
  }
}

}  // namespace
}  // namespace foreshard::host_model_test
