// What check_plan reads from the kinds of axes: which ranks hold the same part of a tensor, in the dense and in the expert grid.
#include <gtest/gtest.h>

#include <algorithm>
#include <functional>

#include "core/check/check_plan.h"
#include "tests/core/support_plan.h"

namespace foreshard::check_plan_kinds_test {
namespace {

constexpr AxisId kTensor{0}, kExpert{1}, kData{2};
constexpr GroupId kDenseGradients{0}, kExpertGradients{1};

std::string text(const std::vector<PlanDefect>& defects) {
  std::string all;
  for (const PlanDefect& d : defects) all += d.rule + " | " + d.where + " | " + d.what + "\n";
  return all;
}

// The small plan on eight ranks a stage. Stage 0 holds a dense weight: the same one everywhere, and tensor ranks see the same tokens,
// so its gradient is summed over data in the dense grid. Stage 1 holds experts, other ones on each rank of an expert group:
//
//   axis       size  dense    expert        gradient of the dense weight   of the experts
//   0 tensor   2     Tensor   Expert
//   1 expert   2     Data     Expert        summed
//   2 data     2     Data     ExpertData    summed                         summed
Plan plan_with_experts() {
  Plan plan = small_plan();
  plan.axes = {{.name = "a", .dense = DenseKind::Tensor, .expert = ExpertKind::Expert, .size = 2},
               {.name = "b", .dense = DenseKind::Data, .expert = ExpertKind::Expert, .size = 2},
               {.name = "c", .dense = DenseKind::Data, .expert = ExpertKind::ExpertData, .size = 2}};
  plan.placement.order.clear();
  plan.groups = {{"dense gradients", {}, {kExpert, kData}}, {"expert gradients", {}, {kData}}};
  for (Role& role : plan.roles) role.axes = {kData, kExpert, kTensor};
  plan.samples = 12;                                                      // one for each of 3 micro-batches of 4 replicas
  plan.tensors[1].grid = Grid::Expert, plan.tensors[1].shape = {64, 16};  // a quarter on each rank
  for (Buffer& buffer : plan.roles[1].buffers)
    for (Shard& shard : buffer.holds) shard.split_by = {kTensor, kExpert};
  plan.segments.push_back(plan.segments[4]);  // the update of stage 1
  plan.segments[5].name = "update of experts";
  std::get<Collective>(instruction_named(plan, "update of experts", "all_reduce").what).group = kExpertGradients;
  plan.roles[1].actions.back().segment = {5};
  plan.costs.clear();
  return plan;
}

GroupId& group(Plan& plan, const char* segment) {
  return std::get<Collective>(instruction_named(plan, segment, "all_reduce").what).group;
}
std::vector<Shard>& gradients(Plan& plan, int role) {
  return buffer_named(plan.roles[static_cast<std::size_t>(role)], "gradient").holds;
}

}  // namespace

TEST(CheckPlanKinds, ExpertsAreHeldByTheirOwnGrid) { EXPECT_EQ(text(check_plan(plan_with_experts())), ""); }

TEST(CheckPlanKinds, PlantedMistakesAreNamed) {
  struct Mistake {
    const char* what;
    const char* rule;
    std::function<void(Plan&)> plant;
  };
  const std::vector<Mistake> mistakes = {
      {"a dense gradient summed as if it were of experts", "gradient-not-reduced",
       [](Plan& p) { group(p, "update") = kExpertGradients; }},
      {"a dense gradient summed over tensor ranks that have the same one", "gradient-over-reduced",
       [](Plan& p) {
         p.groups[0].over = {kData, kExpert, kTensor};
       }},
      {"a dense gradient summed over tensor ranks instead of data ranks", "gradient-not-reduced",
       [](Plan& p) {
         p.groups[0].over = {kTensor, kData};
       }},
      {"experts summed as if they were dense: with other experts", "gradient-over-reduced",
       [](Plan& p) { group(p, "update of experts") = kDenseGradients; }},
      {"experts not summed", "gradient-not-reduced",
       [](Plan& p) { instruction_named(p, "update of experts", "all_reduce").what = Mark{}; }},
      {"experts summed over the expert axis instead of expert data", "gradient-not-reduced",
       [](Plan& p) {
         p.groups[1].over = {kExpert};
         gradients(p, 1)[0].split_by = {kTensor};
       }},
      {"experts of which ranks of an expert axis hold the same ones", "shard-axes",
       [](Plan& p) { gradients(p, 1)[0].split_by = {kTensor}; }},
      {"experts that nobody cuts", "shard-axes", [](Plan& p) { gradients(p, 1)[0].split_by.clear(); }},
      {"experts that are cut over their replicas, too", "shard-axes",
       [](Plan& p) {
         gradients(p, 1)[0].split_by = {kTensor, kExpert, kData};
       }},
      {"experts in the dense grid", "shard-axes", [](Plan& p) { p.tensors[1].grid = Grid::Dense; }},
      {"a dense weight in the expert grid", "shard-axes", [](Plan& p) { p.tensors[0].grid = Grid::Expert; }},
      {"an expert axis whose kind was forgotten", "shard-axes", [](Plan& p) { p.axes[1].expert = ExpertKind::ExpertData; }},
      {"a dense weight cut over data ranks", "shard-axes", [](Plan& p) { gradients(p, 0)[0].split_by = {kData}; }},
      {"a flat cut of experts over other experts", "shard-axes", [](Plan& p) { gradients(p, 1)[0].flat_by = {kExpert}; }},
      {"a flat cut over tensor ranks", "shard-axes", [](Plan& p) { gradients(p, 0)[0].flat_by = {kTensor}; }},
  };
  for (const Mistake& mistake : mistakes) {
    Plan plan = plan_with_experts();
    mistake.plant(plan);
    const std::vector<PlanDefect> defects = check_plan(plan);
    EXPECT_TRUE(std::ranges::any_of(defects, [&](const PlanDefect& d) { return d.rule == mistake.rule; }))
        << mistake.what << ": no " << mistake.rule << " among:\n"
        << text(defects);
  }
}

// Of all sets of axes over which a gradient could be summed, one is right.
TEST(CheckPlanKinds, ExactlyOneSetOfAxesIsRight) {
  for (int role : {0, 1})
    for (unsigned set = 0; set < 8; ++set) {
      Plan plan = plan_with_experts();
      std::vector<AxisId>& over = plan.groups[static_cast<std::size_t>(role)].over;
      over.clear();
      for (int axis = 0; axis < 3; ++axis)
        if (set >> axis & 1U) over.push_back({axis});
      const bool right = set == (role == 0 ? 6U : 4U);
      if (over.empty()) continue;  // a group of one rank: see PlantedMistakesAreNamed
      EXPECT_EQ(check_plan(plan).empty(), right) << "role " << role << " set " << set << "\n" << text(check_plan(plan));
    }
}

TEST(CheckPlanKinds, NamesSayNothing) {
  Plan plan = plan_with_experts();
  for (Axis& axis : plan.axes) axis.name = "tp";
  EXPECT_EQ(text(check_plan(plan)), "");
  plan.axes[2].name = "dp", plan.axes[1].name = "ep";
  plan.groups[0].over = {kData};
  EXPECT_NE(text(check_plan(plan)), "");
}

}  // namespace foreshard::check_plan_kinds_test
