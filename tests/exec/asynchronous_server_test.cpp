// A parameter server whose workers are served in turn trains what a single device trains that takes the gradients of each update at the
// weights of n - 1 updates before.
#include "strategy/server/asynchronous_server.h"

#include <gtest/gtest.h>

#include "core/check/check_plan.h"
#include "core/cluster_file/cluster_file.h"
#include "core/plan/ranks.h"
#include "strategy/tune/tune.h"
#include "tests/exec/single_updates.h"

namespace foreshard::asynchronous_server_test {
namespace {

struct AsynchronousTraining : SingleUpdates {
  // `runs` runs of n workers: worker w's gradients of run r are those of the weights that it pulled after its update of run r - 1.
  // `degrees`: of a worker that is a tensor-parallel group, a pipeline or both.
  void compare(const Model& model, int workers, int runs, const Strategy& degrees = {}, int servers = 1) {
    Strategy strategy = in_double({.batch = {.micro = 1, .global = 2}});
    strategy.optimizer.kind = OptimizerKind::Sgd;
    strategy.vocab_multiple = 4;
    const Plan one = lowered(model, strategy);
    Strategy asked = strategy;
    asked.tp = degrees.tp, asked.pp = degrees.pp, asked.virtual_stages = degrees.virtual_stages;
    asked.pipeline = degrees.pipeline, asked.sequence_parallel = degrees.sequence_parallel;
    asked.vocab_multiple = 4 / asked.tp;
    asked.communication.gradients = degrees.communication.gradients;
    asked.dp = workers, asked.batch.global = 2 * workers;
    asked.communication.asynchronous = true, asked.communication.servers = servers;
    const auto answer = tuned_plan(model, load_cluster("dgx-a100-x2"), asked);
    ASSERT_TRUE(std::holds_alternative<Lowered>(answer)) << std::get<Infeasible>(answer).reason;
    const Plan& plan = std::get<Lowered>(answer).plan;
    EXPECT_EQ(Ranks(plan).count(), workers * asked.tp * asked.pp + servers);
    const auto defects = check_plan(plan);
    ASSERT_TRUE(defects.empty()) << defects[0].rule << " " << defects[0].where << " " << defects[0].what;
    ExecuteOptions poisoned = options(runs);
    poisoned.checks.poison = true;
    const Execution done = run(plan, poisoned);

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
    const bool coded = asked.communication.gradients.codec != Codec::None;  // in fp32
    expect_trained_to(versions.back(), named(plan, done.values), versions.front(), coded ? 1e-8 : 1e-12);
  }
};

TEST_F(AsynchronousTraining, EqualsASingleDeviceWithTheSameStaleness) {
  compare(tiny_gpt(), 1, 2);
  compare(tiny_gpt(), 3, 3);
  compare(tiny_llama(), 2, 3);
}

// DistBelief's model replicas: each worker is two or four devices.
TEST_F(AsynchronousTraining, WorkersOfSeveralDevicesEqualASingleOneEach) {
  compare(tiny_gpt(), 2, 3, {.tp = 2}, 2);
  compare(tiny_gpt(), 2, 3, {.pp = 2}, 1);  // a tied embedding, whose two copies are one on the server
  compare(tiny_gpt(false), 2, 2, {.pp = 2}, 1);
  compare(tiny_llama(), 2, 2, {.tp = 2, .pp = 2}, 2);
  compare(tiny_llama(), 2, 2, {.tp = 2, .sequence_parallel = true}, 2);
  compare(tiny_gpt(false), 2, 2, {.pp = 2, .virtual_stages = 2, .pipeline = {.schedule = Schedule::Interleaved}}, 1);
}

// Each server has some of the parameters, and updates them in turn.
TEST_F(AsynchronousTraining, SeveralServersEqualOne) {
  compare(tiny_gpt(), 3, 3, {}, 2);
  compare(tiny_llama(), 2, 3, {}, 3);
  compare(tiny_gpt(), 2, 3, {.tp = 2}, 4);
  compare(tiny_gpt(), 2, 3, {.pp = 2}, 2);
  compare(tiny_llama(), 2, 2, {.tp = 2, .pp = 2}, 4);
}

// The largest of all numbers are all of them; what rounding to fp32 leaves out is sent with the next push.
TEST_F(AsynchronousTraining, AllNumbersInCodesEqualNone) {
  Strategy all;
  all.communication.gradients = {.codec = Codec::Dgc, .kept = 1};
  compare(tiny_gpt(), 2, 2, all, 2);
  all.tp = 2;
  compare(tiny_llama(), 2, 2, all, 2);
}

// What the server decodes and what the worker keeps for its next push are the gradient.
TEST_F(AsynchronousTraining, CodesAndWhatTheyLeaveOutAreTheGradient) {
  constexpr int kServers = 2;
  Strategy strategy = in_double({.dp = 1, .batch = {.micro = 1, .global = 2}});
  strategy.optimizer.kind = OptimizerKind::Sgd;
  const Plan one = lowered(tiny_gpt(), strategy);
  const Weights whole = named(one, run(one, options()).gradients);
  strategy.communication.asynchronous = true, strategy.communication.servers = kServers;
  for (const Compression& codec : {Compression{.codec = Codec::Segmented, .bits = 8},
                                   Compression{.codec = Codec::Dgc, .kept = 0.1}, Compression{.codec = Codec::OneBit}}) {
    strategy.communication.gradients = codec;
    const Plan plan = lowered(tiny_gpt(), strategy);
    const auto defects = check_plan(plan);
    ASSERT_TRUE(defects.empty()) << defects[0].rule << " " << defects[0].where << " " << defects[0].what;
    ExecuteOptions saved = options();
    saved.save = file("coded.safetensors"), saved.checks.poison = true;
    const Weights decoded = named(plan, run(plan, saved).gradients);
    SafetensorsFile checkpoint(saved.save);
    int tensors = 0;
    double lost = 0;
    for (const Buffer& buffer : plan.roles[kServers].buffers) {
      const std::string left =
          "rank " + std::to_string(kServers) + ": left out" + buffer.name.substr(std::min<std::size_t>(9, buffer.name.size()));
      if (buffer.category != Category::Gradients || !checkpoint.has(left)) continue;
      const std::vector<double> kept = checkpoint.read(left);
      for (const Shard& shard : buffer.holds) {
        const std::string& name = plan.tensors[shard.tensor.index()].name;
        const auto first = static_cast<std::size_t>(shard.at.value / size_of(buffer.dtype).value);
        ++tensors;
        for (std::size_t i = 0; i < whole.at(name).size(); ++i) {
          EXPECT_NEAR(decoded.at(name)[i] + kept[first + i], whole.at(name)[i], 1e-12) << name << " " << i;
          lost = std::max(lost, std::abs(kept[first + i]));
        }
      }
    }
    EXPECT_GT(tensors, 10);
    EXPECT_GT(lost, 1e-6);
  }
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
