// A parameter server whose workers are served in turn trains what a single device trains that takes the gradients of each update at the
// weights of n - 1 updates before.
#include "strategy/server/asynchronous_server.h"

#include <gtest/gtest.h>

#include "core/check/check_plan.h"
#include "tests/exec/single_updates.h"

namespace foreshard::asynchronous_server_test {
namespace {

struct AsynchronousTraining : SingleUpdates {
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
    expect_trained_to(versions.back(), named(plan, done.values), versions.front());
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
