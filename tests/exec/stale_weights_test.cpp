// Pipelines without a flush: a run of PipeDream and of PipeDream-2BW ends with the weights of a single device that takes the gradients
// of each micro-batch at the same mixture of old weights.
#include <gtest/gtest.h>

#include <map>

#include "core/check/check_plan.h"
#include "exec/data/safetensors.h"
#include "tests/exec/checkpoint_folder.h"
#include "tests/exec/training.h"

namespace foreshard {
namespace {

using Weights = std::map<std::string, std::vector<double>>;  // by name of the tensor

Weights named(const Plan& plan, const std::vector<WholeTensor>& tensors) {
  Weights all;
  for (std::size_t t = 0; t < plan.tensors.size(); ++t) all[plan.tensors[t].name] = tensors[t].elements;
  return all;
}

// The pipeline rank that holds each tensor.
std::map<std::string, int> rank_of_tensor(const Plan& plan) {
  std::map<std::string, int> ranks;
  for (std::size_t r = 0; r < plan.roles.size(); ++r)
    for (const Buffer& buffer : plan.roles[r].buffers)
      for (const Shard& shard : buffer.holds) ranks[plan.tensors[shard.tensor.index()].name] = static_cast<int>(r);
  return ranks;
}

using Samples8 = CountingSamples;

struct StaleWeights : CheckpointFolder {
  static constexpr double kRate = 0.1;
  Samples8 samples;

  ExecuteOptions options(int steps = 1) const {
    ExecuteOptions all = training(steps);
    all.optimizer.learning_rate = kRate, all.optimizer.weight_decay = 0, all.samples = &samples;
    return all;
  }
  Strategy strategy(Strategy s) const {
    s.optimizer.kind = OptimizerKind::Sgd;
    return in_double(s);
  }

  // The gradients of update `step` of `one`, a single device, at other weights than it has come to.
  Weights gradients_at(const Plan& one, int step, const Weights& weights) {
    ExecuteOptions run_of = options();
    if (step > 0) {
      ExecuteOptions before = options(step);
      before.save = file("before.safetensors");
      run(one, before);
      SafetensorsFile old(before.save);
      std::vector<StoredTensor> tensors = old.tensors();
      SafetensorsWriter writer(file("mixed.safetensors"), tensors, old.metadata());
      for (std::size_t t = 0; t < tensors.size(); ++t) writer.places().write(t, 0, weights.at(tensors[t].name));
      writer.finish();
      run_of.resume = file("mixed.safetensors");
    }
    return named(one, run(one, run_of).gradients);
  }

  // `backwards` per update; version that rank r's weights have when they take part in update u.
  template <class Version>
  void compare(const Model& model, const Strategy& asynchronous, int backwards, Version version) {
    const Plan plan = lowered(model, strategy(asynchronous));
    const auto defects = check_plan(plan);
    ASSERT_TRUE(defects.empty()) << defects[0].rule << " " << defects[0].where << " " << defects[0].what;
    const Execution done = run(plan, options());

    Strategy single{.batch = {.micro = asynchronous.batch.micro, .global = asynchronous.batch.micro * backwards}};
    const Plan one = lowered(model, strategy(single));
    ExecuteOptions start = options();
    start.optimizer.learning_rate = 0;
    std::vector<Weights> versions = {named(one, run(one, start).values)};
    const auto ranks = rank_of_tensor(plan);
    ASSERT_EQ(plan.updates, plan.microbatches / backwards);
    for (int u = 0; u < plan.updates; ++u) {
      Weights mixed, next = versions.back();
      for (const auto& [name, rank] : ranks) mixed[name] = versions[static_cast<std::size_t>(version(u, rank))].at(name);
      for (const auto& [name, gradient] : gradients_at(one, u, mixed))
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

TEST_F(StaleWeights, PipeDreamReadsTheWeightsOfTheForward) {
  for (const int pp : {2, 4})
    compare(tiny_gpt(false), {.pp = pp, .pipeline = {.schedule = Schedule::PipeDream}, .batch = {.micro = 1, .global = 8}}, 1,
            [&](int microbatch, int rank) { return std::max(0, microbatch - (pp - 1 - rank)); });
}

TEST_F(StaleWeights, TwoVersionsAreOneUpdateLate) {
  compare(tiny_llama(), {.pp = 2, .pipeline = {.schedule = Schedule::PipeDream2BW}, .batch = {.micro = 1, .global = 8}}, 2,
          [](int update, int) { return std::max(0, update - 1); });
}

// ZeRO-Offload's delayed update: the host updates beside the next forwards and backwards, which read the weights of one update before.
TEST_F(StaleWeights, TheHostUpdatesBesideTheNextBackwards) {
  const auto one_late = [](int update, int) { return std::max(0, update - 1); };
  for (const Space home : {Space::PinnedHost, Space::Nvme})
    for (const UpdatedOn processor : {UpdatedOn::Host, UpdatedOn::Device}) {
      Strategy s{.pipeline = {.schedule = Schedule::PipeDream2BW, .microbatch_group = 2}, .batch = {.micro = 1, .global = 8}};
      s.offload.optimizer = home, s.offload.updated_on = processor;
      s.communication.bucket = Bytes{20'000};
      compare(tiny_gpt(), s, 2, one_late);
      s.pp = 2;
      compare(tiny_gpt(false), s, 2, one_late);
    }
}

// Several runs in a row go on from each other: the last version is where the first one is read.
TEST_F(StaleWeights, RunsFollowEachOther) {
  const Plan plan =
      lowered(tiny_gpt(false), strategy({.pp = 4, .pipeline = {.schedule = Schedule::PipeDream}, .batch = {.micro = 1}}));
  const Execution two = run(plan, options(2));
  ExecuteOptions first = options();
  first.save = file("one.safetensors");
  run(plan, first);
  ExecuteOptions second = options();
  second.resume = first.save;
  const Execution resumed = run(plan, second);
  EXPECT_LE(difference(two, resumed).values, 1e-15);
}

TEST_F(StaleWeights, PipeMareTakesTheNewest) {  // what it says, and that it trains
  const Plan plan = lowered(tiny_gpt(false),
                            strategy({.dp = 2, .pp = 2, .pipeline = {.schedule = Schedule::PipeMare}, .batch = {.micro = 1}}));
  EXPECT_TRUE(check_plan(plan).empty());
  const Execution done = run(plan, options(20));
  EXPECT_LT(done.steps.back().loss, 0.5 * done.steps.front().loss);
}

}  // namespace
}  // namespace foreshard
