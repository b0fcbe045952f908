// Pipelines without a flush: a training with PipeDream, PipeDream-2BW or PipeMare ends with the weights of a single device that takes the
// gradients of each micro-batch at the same mixture of old weights. Versions and micro-batches are counted over all steps: the next step
// begins while the last one drains, so only the first micro-batches of a training read weights that are less old.
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
    int steps = 1;
    // The training is resumed after this number of steps: it fills the pipeline again, so that no older version than that is read. 0: it
    // is not.
    int resumed_after = 0;
    int saves_every = 0;  // and goes on
    bool barrier = true;
  };
  Execution train(const Plan& plan, const Stale& stale) const {
    ExecuteOptions all = options(stale.steps);
    all.checks.poison = true;
    all.barrier = stale.barrier, all.saves.every = stale.saves_every;
    if (stale.saves_every > 0) all.save = file("beside.safetensors");
    if (stale.resumed_after == 0) return run(plan, all);
    ExecuteOptions first = options(stale.resumed_after);
    first.save = file("first.safetensors");
    run(plan, first);
    ExecuteOptions second = options(stale.steps - stale.resumed_after);
    second.resume = first.save;
    return run(plan, second);
  }
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
    const Execution done = train(plan, stale);

    Strategy single{.batch = {.micro = asynchronous.batch.micro, .global = asynchronous.batch.micro * backwards}};
    Plan one = lowered(model, strategy(single));
    ExecuteOptions start = options();
    start.optimizer.learning_rate = 0;
    std::vector<Weights> versions = {named(one, run(one, start).values)};
    if (stale.backward_reads_newest) one = with_two_versions(std::move(one));
    const auto ranks = rank_of_tensor(plan);
    ASSERT_EQ(plan.updates, plan.microbatches / backwards);
    const int filled = stale.resumed_after * plan.updates;
    for (int u = 0; u < stale.steps * plan.updates; ++u) {
      Weights mixed, next = versions.back();
      for (const auto& [name, rank] : ranks) {
        const int version = std::max(stale.version(u, rank), u < filled ? 0 : filled);
        mixed[name] = versions[static_cast<std::size_t>(version)].at(name);
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
    compare(tiny_gpt(false), {.pp = pp, .pipeline = {.schedule = Schedule::PipeDream}, .batch = {.micro = 1, .global = 8}},
            {.version = [&](int microbatch, int rank) { return std::max(0, microbatch - (pp - 1 - rank)); }, .steps = 2});
}

TEST_F(StaleWeights, TwoVersionsAreOneUpdateLate) {
  compare(tiny_llama(), {.pp = 2, .pipeline = {.schedule = Schedule::PipeDream2BW}, .batch = {.micro = 1, .global = 8}},
          {.backwards = 2, .version = [](int update, int) { return std::max(0, update - 1); }, .steps = 2});
}

// Staleness lasts over steps: with one group per step, too, the gradients are those at the weights of one update before.
TEST_F(StaleWeights, TwentyStepsOfOneGroupEach) {
  for (const int pp : {1, 2, 4})
    compare(
        tiny_gpt(pp == 1),
        {.pp = pp, .pipeline = {.schedule = Schedule::PipeDream2BW, .microbatch_group = 4}, .batch = {.micro = 1, .global = 4}},
        {.backwards = 4, .version = [](int update, int) { return std::max(0, update - 1); }, .steps = 20});
}

// An odd number of groups: the version that the last update overwrites is copied to the other slot.
TEST_F(StaleWeights, StepsOfThreeGroups) {
  for (const int pp : {1, 2})
    compare(
        tiny_gpt(pp == 1),
        {.pp = pp, .pipeline = {.schedule = Schedule::PipeDream2BW, .microbatch_group = 2}, .batch = {.micro = 1, .global = 6}},
        {.backwards = 2, .version = [](int update, int) { return std::max(0, update - 1); }, .steps = 3});
}

// 20 steps of as many micro-batches as there are ranks; and steps of others, in which rings have more slots.
TEST_F(StaleWeights, PipeDreamAndPipeMareOverSteps) {
  const auto version = [](int pp) {
    return [pp](int microbatch, int rank) { return std::max(0, microbatch - (pp - 1 - rank)); };
  };
  for (const bool mare : {false, true})
    for (const auto& [pp, global] : {std::pair{4, 4}, {4, 5}, {2, 3}}) {
      Strategy s{.pp = pp,
                 .pipeline = {.schedule = mare ? Schedule::PipeMare : Schedule::PipeDream},
                 .batch = {.micro = 1, .global = global}};
      compare(tiny_gpt(false), s,
              {.version = version(pp),
               .backward_reads_newest = mare,
               .steps = global == 4   ? 20
                        : global == 5 ? 4
                                      : 5});
    }
}

// Activations that leave the device pass through a few places, in the first and the last step as in those between.
TEST_F(StaleWeights, ActivationsThatLeaveTheDevice) {
  for (const OffloadedActivations leaves : {OffloadedActivations::Inputs, OffloadedActivations::All})
    for (const Schedule schedule : {Schedule::PipeDream, Schedule::PipeMare}) {
      Strategy s{.pp = 2, .pipeline = {.schedule = schedule}, .batch = {.micro = 1, .global = 4}};
      s.offload.activations = leaves;
      compare(tiny_gpt(false), s,
              {.version = [](int microbatch, int rank) { return std::max(0, microbatch - (1 - rank)); },
               .backward_reads_newest = schedule == Schedule::PipeMare,
               .steps = 3});
    }
}

// What a step begins of the next one does not depend on barriers, and not on checkpoints between steps.
TEST_F(StaleWeights, BarriersAndCheckpointsChangeNothing) {
  for (const Schedule schedule : {Schedule::PipeDream, Schedule::PipeDream2BW, Schedule::PipeMare}) {
    const Plan plan =
        lowered(tiny_gpt(false), strategy({.pp = 4, .pipeline = {.schedule = schedule}, .batch = {.micro = 1, .global = 4}}));
    const Execution plain = train(plan, {.steps = 5}), free = train(plan, {.steps = 5, .barrier = false});
    const Execution saved = train(plan, {.steps = 5, .saves_every = 2});
    EXPECT_EQ(difference(plain, free).values, 0);
    EXPECT_EQ(difference(plain, saved).values, 0);
    for (std::size_t step = 0; step < 5; ++step) EXPECT_EQ(plain.steps[step].loss, saved.steps[step].loss);
  }
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
      for (const int pp : {1, 2}) {  // one group per step
        s.pp = pp, s.batch.global = 2;
        compare(tiny_gpt(pp == 1), s, {.backwards = 2, .version = one_late, .steps = 3});
      }
    }
}

// A checkpoint has one version of the weights. A resumed training fills the pipeline again, with these.
TEST_F(StaleWeights, AResumedTrainingFillsThePipelineAgain) {
  for (const bool mare : {false, true})
    compare(tiny_gpt(false),
            {.pp = 4,
             .pipeline = {.schedule = mare ? Schedule::PipeMare : Schedule::PipeDream},
             .batch = {.micro = 1, .global = 4}},
            {.version = [](int microbatch, int rank) { return std::max(0, microbatch - (3 - rank)); },
             .backward_reads_newest = mare,
             .steps = 3,
             .resumed_after = 2});
  compare(tiny_gpt(false), {.pp = 2, .pipeline = {.schedule = Schedule::PipeDream2BW}, .batch = {.micro = 1, .global = 2}},
          {.backwards = 2, .version = [](int update, int) { return std::max(0, update - 1); }, .steps = 4, .resumed_after = 2});
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
