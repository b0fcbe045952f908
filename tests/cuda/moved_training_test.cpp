// Single activations that leave and come back (`--offload-activations vdnn` and `free-time`), and regions of layers whose parameters stay
// or are fetched again (`--policy greedy`), on GPUs that are not there: as on the host.
#include <gtest/gtest.h>

#include <algorithm>

#include "core/check/check_plan.h"
#include "core/cluster_file/cluster_file.h"
#include "core/result/memory_timeline.h"
#include "strategy/tune/tune.h"
#include "tests/cuda/fake_training.h"

namespace foreshard::gpu::moved_training_test {
namespace {

int copies(const Plan& plan, const char* name) {
  int count = 0;
  for (const Segment& segment : plan.segments)
    for (const Instruction& run : segment.instructions) count += run.name == name ? 1 : 0;
  return count;
}

Bytes arena(const Plan& plan) {
  Bytes most = {};
  for (const Role& role : plan.roles) most = std::max(most, arena_bytes(role, Space::Device));
  return most;
}

// On a runtime that orders nothing by itself. One step: see CudaTraining.OneRankEqualsTheHost.
void expect_as_on_host(const Plan& plan, std::uint64_t seed, const std::string& name) {
  FakeSettings settings;
  settings.seed = seed;
  FakeRuntime runtime(settings);
  const Execution host = run(plan, fake_training(1)), fake = run(plan, on_fake(runtime, 1));
  EXPECT_LE(difference(fake, host).largest(), 1e-5) << name << " " << difference(fake, host).worst;
  EXPECT_TRUE(runtime.conflicts().empty()) << name << ": " << runtime.conflicts().front();
  EXPECT_EQ(runtime.allocated(), 0) << name;
}

struct Case {
  Model model = {};
  Strategy strategy = {};
};

std::vector<Case> cases() {
  const Model gpt = two_layers(tiny_gpt());
  return {{tiny_cnn(), {.batch = {.micro = 4}}},
          {tiny_cnn(), {.dp = 2, .batch = {.micro = 2}, .zero = {.stage = 3}}},
          {tiny_cnn(), {.pp = 2, .batch = {.micro = 2}}},
          {gpt, {.batch = {.micro = 4}}},
          {gpt, {.dp = 2, .batch = {.micro = 2}, .zero = {.stage = 3}, .dropout = 0.1}},
          {gpt, {.pp = 2, .batch = {.micro = 2}}}};
}

}  // namespace

TEST(CudaMoves, VdnnTrainsAsOnTheHost) {
  std::uint64_t seed = 71;
  for (const auto& [model, strategy] : cases()) {
    if (model != tiny_cnn()) continue;
    for (const Space home : {Space::PinnedHost, Space::Nvme}) {
      Strategy s = in_single(strategy);
      s.offload.activations = OffloadedActivations::Vdnn, s.offload.activation_home = home;
      const Plan moved = lowered(model, s);
      EXPECT_GT(copies(moved, "to host"), 0) << name_of(s);
      expect_as_on_host(moved, seed++, name_of(s));
    }
  }
}

// Within less than the plan would take.
TEST(CudaMoves, FreeTimeTrainsAsOnTheHost) {
  std::uint64_t seed = 91;
  for (const auto& [model, strategy] : cases()) {
    Strategy s = in_single(strategy);
    const Bytes kept = arena(lowered(model, s));
    s.offload.activations = OffloadedActivations::FreeTime;
    s.offload.budget = {kept.value * 97 / 100};
    const Plan moved = lowered(model, s);
    EXPECT_GT(copies(moved, "to host"), 0) << model.name << " " << name_of(s);
    expect_as_on_host(moved, seed++, model.name + " " + name_of(s));
  }
}

// A region that stays, one that comes back beside the backward of the next, and one that its own backward waits for.
TEST(CudaMoves, RegionsTrainAsOnTheHost) {
  const Cluster cluster = load_cluster("dgx-a100");
  const Model model = tiny_gpt();
  std::uint64_t seed = 111;
  for (const Strategy& strategy : std::vector<Strategy>{{.batch = {.micro = 4}}, {.dp = 2, .batch = {.micro = 2}}})
    for (const char* policy : {"greedy", "greedy_sync"}) {
      Strategy s = in_single(strategy);
      s.policy = policy;
      auto tuned = tune(model, cluster, s);
      ASSERT_TRUE(std::holds_alternative<Tuned>(tuned)) << std::get<Infeasible>(tuned).reason;
      Tuned& closed = std::get<Tuned>(tuned);
      ASSERT_TRUE(closed.rows.regions.has_value());
      const std::size_t layers = closed.rows.regions->region_of_layer.size();
      RegionRule rule{.window = 3};
      for (int layer = 0; layer < static_cast<int>(layers); ++layer) {
        rule.region_of_layer.push_back(layer);
        const bool last = layer + 1 == static_cast<int>(layers);
        const std::vector<int> ways = {RegionChoice::kKept, last ? layer : layer + 1, layer};
        rule.choices.push_back({.fetched_by = ways[static_cast<std::size_t>(layer) % ways.size()]});
      }
      closed.rows.regions = rule;
      auto answer = lower(model, cluster, closed.strategy, {}, closed.rows);
      ASSERT_TRUE(std::holds_alternative<Lowered>(answer)) << std::get<Infeasible>(answer).reason;
      const Plan plan = std::get<Lowered>(std::move(answer)).plan;
      EXPECT_TRUE(check_plan(plan).empty());
      EXPECT_GT(copies(plan, "bring parameters"), static_cast<int>(layers));  // again for backwards
      expect_as_on_host(plan, seed++, std::string(policy) + " " + name_of(s));
    }
}

}  // namespace foreshard::gpu::moved_training_test
