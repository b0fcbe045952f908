// Pipelines without a flush: a run of PipeDream and of PipeDream-2BW ends with the weights of a single device that takes the gradients
// of each micro-batch at the same mixture of old weights.
#include <gtest/gtest.h>

#include <functional>
#include <map>

#include "core/check/check_plan.h"
#include "core/result/memory_timeline.h"
#include "tests/exec/single_updates.h"

namespace foreshard::stale_weights_test {
namespace {

// The pipeline rank that holds each tensor.
std::map<std::string, int> rank_of_tensor(const Plan& plan) {
  std::map<std::string, int> ranks;
  for (std::size_t r = 0; r < plan.roles.size(); ++r)
    for (const Buffer& buffer : plan.roles[r].buffers)
      for (const Shard& shard : buffer.holds) ranks[plan.tensors[shard.tensor.index()].name] = static_cast<int>(r);
  return ranks;
}

struct StaleWeights : SingleUpdates {
  Strategy strategy(Strategy s) const {
    s.optimizer.kind = OptimizerKind::Sgd;
    return in_double(s);
  }

  struct Stale {
    int backwards = 1;                          // per update
    std::function<int(int, int)> version = {};  // (u, r): that rank r's weights have when they take part in update u
    std::function<double(int, int)> rate = {};  // (u, r): what rank r's learning rate is multiplied by; empty: 1
    bool backward_reads_newest = false;
  };
  // For a single device: a plan whose backwards read other tensors than its forwards, of names that end in ".newest".
  static Plan with_two_versions(Plan plan) {
    const std::size_t tensors = plan.tensors.size();
    for (std::size_t t = 0; t < tensors; ++t) {
      plan.tensors.push_back(plan.tensors[t]);
      plan.tensors.back().name += ".newest";
    }
    Role& role = plan.roles.at(0);
    std::map<BufferId, BufferId> newest;
    std::int64_t end = arena_bytes(role, Space::Device).value;
    for (std::size_t b = 0, all = role.buffers.size(); b < all; ++b) {
      if (role.buffers[b].category != Category::Parameters) continue;
      Buffer copy = role.buffers[b];
      copy.name += ".newest";
      copy.offsets = {{end}};
      end += (copy.bytes.value + 511) / 512 * 512;
      for (Shard& shard : copy.holds) shard.tensor = {shard.tensor.value + static_cast<std::int32_t>(tensors)};
      newest[{static_cast<std::int32_t>(b)}] = {static_cast<std::int32_t>(role.buffers.size())};
      role.buffers.push_back(std::move(copy));
    }
    for (Segment& segment : plan.segments)
      for (Instruction& instruction : segment.instructions) {
        const auto* what = std::get_if<Compute>(&instruction.what);
        if (!what || what->phase == Phase::Forward || what->phase == Phase::Update) continue;
        for (Use& use : instruction.reads)
          if (const auto other = newest.find(use.buffer); other != newest.end()) use.buffer = other->second;
      }
    return plan;
  }

  // `backwards` per update; version that rank r's weights have when they take part in update u.
  template <class Version>
  void compare(const Model& model, const Strategy& asynchronous, int backwards, Version version) {
    compare(model, asynchronous, Stale{.backwards = backwards, .version = version});
  }
  void compare(const Model& model, const Strategy& asynchronous, const Stale& stale) {
    const int backwards = stale.backwards;
    const Plan plan = lowered(model, strategy(asynchronous));
    const auto defects = check_plan(plan);
    ASSERT_TRUE(defects.empty()) << defects[0].rule << " " << defects[0].where << " " << defects[0].what;
    const Execution done = run(plan, options());

    Strategy single{.batch = {.micro = asynchronous.batch.micro, .global = asynchronous.batch.micro * backwards}};
    Plan one = lowered(model, strategy(single));
    ExecuteOptions start = options();
    start.optimizer.learning_rate = 0;
    std::vector<Weights> versions = {named(one, run(one, start).values)};
    if (stale.backward_reads_newest) one = with_two_versions(std::move(one));
    const auto ranks = rank_of_tensor(plan);
    ASSERT_EQ(plan.updates, plan.microbatches / backwards);
    for (int u = 0; u < plan.updates; ++u) {
      Weights mixed, next = versions.back();
      for (const auto& [name, rank] : ranks) {
        mixed[name] = versions[static_cast<std::size_t>(stale.version(u, rank))].at(name);
        mixed[name + ".newest"] = versions.back().at(name);
      }
      const Weights gradients = gradients_at(one, u, mixed);
      for (const auto& [name, rank] : ranks) {
        const std::vector<double>& gradient = gradients.at(name);
        const double rate = kRate * (stale.rate ? stale.rate(u, rank) : 1);
        for (std::size_t i = 0; i < gradient.size(); ++i) next[name][i] -= rate * gradient[i];
      }
      versions.push_back(std::move(next));
    }
    expect_trained_to(versions.back(), named(plan, done.values), versions.front());
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

// A backward of pipemare reads newer weights than its forward did, and the rate of each rank is divided by its delay of pp-1-r updates,
// less and less: by delay^(1 - u/5) at update u.
TEST_F(StaleWeights, PipeMareDividesTheRateByTheDelay) {
  const auto rate = [](int pp, int u, int rank) { return std::pow(std::max(1, pp - 1 - rank), -std::max(0.0, 1 - u / 5.0)); };
  for (const int pp : {2, 4})
    for (const int annealing : {0, 5})
      for (const bool mare : {true, false}) {
        Strategy s{.pp = pp,
                   .pipeline = {.schedule = mare ? Schedule::PipeMare : Schedule::PipeDream},
                   .batch = {.micro = 1, .global = 8}};
        s.optimizer.delay_annealing = annealing;
        Stale stale{.version = [&](int u, int rank) { return std::max(0, u - (pp - 1 - rank)); }};
        if (annealing > 0) stale.rate = [&](int u, int rank) { return rate(pp, u, rank); };
        stale.backward_reads_newest = mare;
        compare(tiny_gpt(false), s, stale);
      }
}

TEST_F(StaleWeights, PipeMareTakesTheNewest) {  // what it says, and that it trains
  const Plan plan = lowered(tiny_gpt(false),
                            strategy({.dp = 2, .pp = 2, .pipeline = {.schedule = Schedule::PipeMare}, .batch = {.micro = 1}}));
  EXPECT_TRUE(check_plan(plan).empty());
  const Execution done = run(plan, options(20));
  EXPECT_LT(done.steps.back().loss, 0.5 * done.steps.front().loss);
}

}  // namespace
}  // namespace foreshard::stale_weights_test
