// A parameter server whose workers are served in turn trains what a single device trains that takes the gradients of each update at the
// weights of n - 1 updates before.
#include "strategy/server/asynchronous_server.h"

#include <gtest/gtest.h>

#include <cmath>
#include <map>

#include "core/check/check_plan.h"
#include "exec/data/safetensors.h"
#include "tests/exec/checkpoint_folder.h"
#include "tests/exec/training.h"

namespace foreshard::asynchronous_server_test {
namespace {

using Weights = std::map<std::string, std::vector<double>>;  // by name of the tensor

struct AsynchronousTraining : CheckpointFolder {
  static constexpr double kRate = 0.1;
  CountingSamples samples;

  ExecuteOptions options(int steps) const {
    ExecuteOptions all = training(steps);
    all.optimizer.learning_rate = kRate, all.optimizer.weight_decay = 0, all.samples = &samples;
    return all;
  }
  static Weights named(const Plan& plan, const std::vector<WholeTensor>& tensors) {
    Weights all;
    for (std::size_t t = 0; t < plan.tensors.size(); ++t) all[plan.tensors[t].name] = tensors[t].elements;
    return all;
  }
  // The gradients of update `step` of `one` at these weights.
  Weights gradients_at(const Plan& one, int step, const Weights& weights) {
    ExecuteOptions before = options(1);
    before.save = file("before.safetensors");
    run(one, before);
    SafetensorsFile old(before.save);
    std::vector<StoredTensor> tensors = old.tensors();
    auto metadata = old.metadata();
    metadata.at("step") = std::to_string(step);
    metadata.at("samples") = std::to_string(step * one.samples);
    SafetensorsWriter writer(file("at.safetensors"), tensors, metadata);
    for (std::size_t t = 0; t < tensors.size(); ++t) writer.places().write(t, 0, weights.at(tensors[t].name));
    writer.finish();
    ExecuteOptions run_of = options(1);
    run_of.resume = file("at.safetensors");
    return named(one, run(one, run_of).gradients);
  }

  // `runs` runs of n workers: worker w's gradients of run r are those of the weights that it pulled after its update of run r - 1.
  void compare(const Model& model, int workers, int runs) {
    Strategy strategy = in_double({.batch = {.micro = 1, .global = 2}});
    strategy.optimizer.kind = OptimizerKind::Sgd;
    const Plan one = lowered(model, strategy);
    const Plan plan = std::get<Plan>(asynchronous_server(one, workers));
    const auto defects = check_plan(plan);
    ASSERT_TRUE(defects.empty()) << defects[0].rule << " " << defects[0].where << " " << defects[0].what;
    const Execution done = run(plan, options(runs));

    ExecuteOptions start = options(1);
    start.optimizer.learning_rate = 0;
    std::vector<Weights> versions = {named(one, run(one, start).values)};
    for (int u = 0; u < runs * workers; ++u) {
      const Weights gradients = gradients_at(one, u, versions[static_cast<std::size_t>(std::max(0, u - workers + 1))]);
      Weights next = versions.back();
      for (const auto& [name, gradient] : gradients)
        for (std::size_t i = 0; i < gradient.size(); ++i) next[name][i] -= kRate * gradient[i];
      versions.push_back(std::move(next));
    }
    double largest = 0, moved = 0;
    for (const auto& [name, weights] : named(plan, done.values))
      for (std::size_t i = 0; i < weights.size(); ++i) {
        largest = std::max(largest, std::abs(weights[i] - versions.back().at(name)[i]));
        moved = std::max(moved, std::abs(weights[i] - versions.front().at(name)[i]));
      }
    EXPECT_LE(largest, 1e-12);
    EXPECT_GT(moved, 1e-3);
  }
};

TEST_F(AsynchronousTraining, EqualsASingleDeviceWithTheSameStaleness) {
  compare(tiny_gpt(), 1, 2);
  compare(tiny_gpt(), 3, 3);
  compare(tiny_llama(), 2, 3);
}

TEST_F(AsynchronousTraining, Trains) {
  const Plan one = lowered(tiny_gpt(), in_double({.batch = {.micro = 1, .global = 2}}));
  const Plan plan = std::get<Plan>(asynchronous_server(one, 4));
  ExecuteOptions slowly = options(20);
  slowly.optimizer.learning_rate = 0.003;
  const Execution done = run(plan, slowly);
  EXPECT_LT(done.steps.back().loss, 0.7 * done.steps.front().loss);
}

}  // namespace
}  // namespace foreshard::asynchronous_server_test
