// Activations that wait for their backward in host memory or on drives: the plan is sound, trains the same model as one device that keeps
// them, and holds few of them on the device.
#include <gtest/gtest.h>

#include "core/check/check_plan.h"
#include "core/cluster/cluster.h"
#include "core/result/memory_timeline.h"
#include "tests/exec/training.h"
#include "tests/how_many.h"

namespace foreshard::offloaded_activations_test {
namespace {

std::vector<Strategy> strategies() {
  std::vector<Strategy> all = {
      {.dp = 1, .batch = {.micro = 2}},
      {.dp = 2, .batch = {.micro = 1}, .zero = {.stage = 1}, .dropout = 0.1},
      {.dp = 2, .batch = {.micro = 1}, .zero = {.stage = 3}},
      {.dp = 1, .tp = 2, .sequence_parallel = true},
      {.dp = 1, .cp = 2},
      {.dp = 1, .pp = 2, .batch = {.micro = 1}},
      {.dp = 1, .pp = 2, .pipeline = {.schedule = Schedule::GPipe}, .batch = {.micro = 1}},
      {.dp = 1, .pp = 2, .virtual_stages = 2, .batch = {.micro = 1}},
      {.dp = 1, .batch = {.micro = 2}, .recompute = parse_recompute("full", "test")},
      {.dp = 1, .pp = 2, .batch = {.micro = 1}, .recompute = parse_recompute("full:1", "test")},
      {.dp = 1, .batch = {.micro = 2}, .recompute = parse_recompute("selective", "test")},
      {.dp = 1, .batch = {.micro = 2}, .recompute = parse_recompute("norm,activation", "test")},
  };
  std::vector<Strategy> away;
  for (Strategy s : all)
    for (const OffloadedActivations what : {OffloadedActivations::Inputs, OffloadedActivations::All})
      for (const Space home : {Space::PinnedHost, Space::Nvme}) {
        s.offload.activations = what, s.offload.activation_home = home;
        away.push_back(s);
      }
  return away;
}

}  // namespace

TEST(OffloadedActivations, PlansAreSound) {
  for (const Strategy& strategy : strategies()) {
    const Plan plan = lowered(tiny_gpt(), in_double(strategy));
    const auto defects = check_plan(plan);
    EXPECT_TRUE(defects.empty()) << name_of(strategy) << ": " << defects.front().where << ": " << defects.front().what;
  }
}

TEST(OffloadedActivations, TrainTheSameModel) {
  for (const Strategy& strategy : some_of(strategies(), 8)) {
    const Strategy s = in_double(strategy);
    Strategy plain = s;
    plain.offload = {};
    const Execution moved = run(lowered(tiny_gpt(), s), training()), kept = run(lowered(tiny_gpt(), plain), training());
    EXPECT_EQ(difference(kept, moved).largest(), 0) << name_of(s) << ", " << difference(kept, moved).worst;
  }
}

// Two places of each value that a layer keeps, and three of the inputs, however many layers there are; what the last layer keeps
// stays.
TEST(OffloadedActivations, LieInHostMemory) {
  Strategy s = in_double({.dp = 1, .batch = {.micro = 2}});
  const Plan kept = lowered(tiny_gpt(), s);
  s.offload.activations = OffloadedActivations::All;
  const Plan away = lowered(tiny_gpt(), s);
  const auto activations = [](const Plan& plan, Space space) {
    Bytes bytes = {};
    for (const Buffer& buffer : plan.roles[0].buffers)
      if (buffer.space == space && buffer.category == Category::Activations)
        bytes += buffer.bytes * static_cast<std::int64_t>(buffer.offsets.size());
    return bytes;
  };
  const Bytes all = activations(kept, Space::Device), here = activations(away, Space::Device),
              there = activations(away, Space::PinnedHost);
  EXPECT_EQ(activations(kept, Space::PinnedHost), Bytes{});
  Bytes input = {};  // of a layer
  for (const Buffer& buffer : away.roles[0].buffers)
    if (buffer.name.starts_with("border.passing")) input = buffer.bytes;
  EXPECT_GT(input, Bytes{});
  constexpr std::int64_t kLayersOut = 3;  // of the four of tiny_gpt
  EXPECT_EQ((here - (all - there)).value, there.value / kLayersOut * 2 + input.value);
}

}  // namespace foreshard::offloaded_activations_test
