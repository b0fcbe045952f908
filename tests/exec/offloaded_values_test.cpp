// Single activations that go to host memory or drives, by vDNN's rule or by free time: the plan is sound, and trains bit by bit the model
// that
// keeps them.
#include <gtest/gtest.h>

#include <algorithm>

#include "core/check/check_plan.h"
#include "core/cluster_file/cluster_file.h"
#include "core/result/memory_timeline.h"
#include "strategy/tune/tune.h"
#include "tests/exec/training.h"

namespace foreshard::offloaded_values_test {
namespace {

struct Case {
  Model model = {};
  std::vector<Strategy> strategies = {};
};

std::vector<Case> cases() {
  const auto recomputed = [](const char* how) {
    return Strategy{.dp = 1, .batch = {.micro = 2}, .recompute = parse_recompute(how, "test")};
  };
  return {{tiny_cnn(),
           {{.dp = 1, .batch = {.micro = 2}},
            {.dp = 2, .batch = {.micro = 1}, .zero = {.stage = 1}},
            {.dp = 2, .batch = {.micro = 1}, .zero = {.stage = 3}},
            {.dp = 1, .pp = 2, .batch = {.micro = 1}},
            {.dp = 1, .pp = 2, .pipeline = {.schedule = Schedule::GPipe}, .batch = {.micro = 1}},
            recomputed("full"),
            recomputed("full:1")}},
          {tiny_gpt(),
           {{.dp = 1, .batch = {.micro = 2}},
            {.dp = 2, .batch = {.micro = 1}, .zero = {.stage = 3}, .dropout = 0.1},
            {.dp = 1, .tp = 2, .sequence_parallel = true},
            {.dp = 1, .cp = 2},
            {.dp = 1, .pp = 2, .batch = {.micro = 1}},
            {.dp = 1, .pp = 2, .virtual_stages = 2, .batch = {.micro = 1}},
            recomputed("full"),
            recomputed("selective"),
            recomputed("norm,activation")}}};
}

Bytes arena(const Plan& plan) {
  Bytes most = {};
  for (const Role& role : plan.roles) most = std::max(most, arena_bytes(role, Space::Device));
  return most;
}

int copies(const Plan& plan, const char* name) {
  int count = 0;
  for (const Segment& segment : plan.segments)
    for (const Instruction& run : segment.instructions) count += run.name == name ? 1 : 0;
  return count;
}

// The plan moves values, is sound and trains as `kept` does.
void expect_same(const Model& model, const Plan& kept, const Plan& moved, const std::string& name) {
  const auto defects = check_plan(moved);
  EXPECT_TRUE(defects.empty()) << name << ": " << defects.front().where << ": " << defects.front().what;
  EXPECT_GT(copies(moved, "to host"), 0) << name;
  EXPECT_GE(copies(moved, "from host"), copies(moved, "to host")) << name;  // a forward has backwards of several kinds
  const Difference apart = difference(run(kept, training()), run(moved, training()));
  EXPECT_EQ(apart.largest(), 0) << name << " " << model.name << ", " << apart.worst;
}

}  // namespace

TEST(OffloadedValues, VdnnTrainsTheSameModel) {
  const Case pictures = cases().front();
  for (const Strategy& strategy : pictures.strategies)
    for (const Space home : {Space::PinnedHost, Space::Nvme}) {
      Strategy s = in_double(strategy);
      const Plan kept = lowered(pictures.model, s);
      s.offload.activations = OffloadedActivations::Vdnn, s.offload.activation_home = home;
      expect_same(pictures.model, kept, lowered(pictures.model, s), name_of(s));
    }
}

// With 97 % of what the plan would take, packed by the order of its run.
TEST(OffloadedValues, FreeTimeTrainsTheSameModelWithinItsBudget) {
  std::string refused;
  for (const auto& [model, strategies] : cases())
    for (const Strategy& strategy : strategies) {
      Strategy s = in_double(strategy);
      const Plan kept = lowered(model, s);
      s.offload.activations = OffloadedActivations::FreeTime;
      EXPECT_EQ(copies(lowered(model, s), "to host"), 0) << name_of(s);  // it fits
      s.offload.budget = {arena(kept).value * 94 / 100};
      const auto answer = tuned_plan(model, load_cluster("dgx-a100"), s);
      if (std::holds_alternative<Infeasible>(answer)) {
        refused += model.name + ", recompute " + to_text(s.recompute) + ". ";
        continue;
      }
      const Plan& moved = std::get<Lowered>(answer).plan;
      EXPECT_LE(arena(moved), s.offload.budget) << name_of(s);
      expect_same(model, kept, moved, name_of(s));
    }
  // What full recomputation keeps, the inputs of layers, shares bytes already where the arena is fullest.
  EXPECT_EQ(refused, "tiny-cnn, recompute full. tiny-gpt, recompute full. ");
}

// What moves has left the device when the next operator but one runs: of a long chain only a few values are there.
TEST(OffloadedValues, ThePlaceIsFreeForOthers) {
  Strategy s = in_double({.dp = 1, .batch = {.micro = 8}});
  const Plan kept = lowered(tiny_cnn(), s);
  s.offload.activations = OffloadedActivations::Vdnn;
  const Plan moved = lowered(tiny_cnn(), s);
  EXPECT_LT(arena(moved), arena(kept));
  EXPECT_GT(arena_bytes(moved.roles.front(), Space::PinnedHost), Bytes{});
}

}  // namespace foreshard::offloaded_values_test
