// Plan files of version 1: an axis was what its name begins with, the placement named axes, settings of operators were text.
#include <gtest/gtest.h>

#include "core/base/error.h"
#include "core/plan/plan.h"
#include "tests/changed_text.h"
#include "tests/core/support_plan.h"

namespace foreshard::plan_json_version1_test {
namespace {

// A plan of version 1 with these axes and this order; nothing else of it differs from version 2.
std::string old_file(const std::string& axes, const std::string& order) {
  std::string text = replaced(to_json(small_plan()), "\"version\": 2", "\"version\": 1");
  text = replaced(text, R"({"name":"dp","dense":"data","size":2})", axes);
  return replaced(text, R"([0, "role"])", order);
}
std::string message(const std::string& text) {
  return error_of([&] { parse_plan(text, "p.json"); });
}

}  // namespace

TEST(PlanJsonVersion1, IsThePlanOfToday) {
  const Plan plan = parse_plan(old_file(R"({"name":"dp","size":2})", R"(["dp", "role"])"), "p.json");
  EXPECT_EQ(plan, small_plan());
  EXPECT_EQ(program_hash(plan), program_hash(small_plan()));
}

TEST(PlanJsonVersion1, NamesSayTheKinds) {
  const Plan plan = parse_plan(old_file(R"({"name":"dp","size":2},{"name":"dp_outer","size":3},{"name":"dp.node","size":2},)"
                                        R"({"name":"cp","size":2},{"name":"tp.2","size":4})",
                                        R"(["tp.2", "role", "dp", "cp", "dp.node", "dp_outer"])"),
                               "p.json");
  using enum DenseKind;
  std::vector<DenseKind> kinds;
  for (const Axis& axis : plan.axes) {
    kinds.push_back(axis.dense);
    EXPECT_EQ(axis.expert, ExpertKind::ExpertData);
  }
  EXPECT_EQ(kinds, (std::vector<DenseKind>{Data, OuterData, Data, Context, Tensor}));
  EXPECT_EQ(plan.placement.order, (std::vector<AxisId>{{4}, Placement::kRole, {0}, {3}, {2}, {1}}));
  EXPECT_EQ(plan.version, Plan::kVersion);
}

TEST(PlanJsonVersion1, AxesMayStandBehindThePlacement) {
  std::string text = old_file(R"({"name":"dp","size":2})", R"(["dp", "role"])");
  const std::size_t at = text.find("  \"axes\": ["), to = text.find("],", at) + 3;
  const std::string axes = text.substr(at, to - at);
  text = text.erase(at, to - at).insert(text.find("  \"costs\":"), axes);
  EXPECT_EQ(parse_plan(text, "p.json"), small_plan());
}

TEST(PlanJsonVersion1, WhatHasNoKindIsRefused) {
  EXPECT_EQ(
      message(old_file(R"({"name":"ep","size":2})", R"(["ep", "role"])")),
      "p.json: axes[0].name: found \"ep\", expected a name that begins with tp, cp or dp: in version 1 it says what the axis "
      "is");
  EXPECT_EQ(message(old_file(R"({"name":"dp","size":2})", R"(["dq", "role"])")),
            "p.json: placement.order[0]: found \"dq\", expected the name of an axis, or \"role\"");
  EXPECT_EQ(message(old_file(R"({"name":"dp","size":2})", R"(["dp"])")),
            "p.json: placement.order: found no \"role\", expected each of 0, \"role\" once, fastest first");
  EXPECT_EQ(message(old_file(R"({"name":"dp","dense":"data","size":2})", R"(["dp", "role"])")).substr(0, 51),
            "p.json: axes[0].dense: found an unknown key with va");
}

// What stood in "attributes" beside the settings of operators.
TEST(PlanJsonVersion1, WordsSayWhatAnInstructionDoes) {
  const std::string old = old_file(R"({"name":"dp","size":2})", R"(["dp", "role"])");
  const auto gradient = [](Plan plan) { return std::get<Compute>(instruction_named(plan, "backward.0", "gradient").what); };
  const auto reduce = [](Plan plan) { return std::get<Collective>(instruction_named(plan, "update", "all_reduce").what); };
  const Plan slices = parse_plan(
      replaced(old, R"("accumulate_weights":true)",
               R"("attributes":"loss_scale=8 dynamic_scale accumulate_weights slice=)" + small_plan().groups[0].name + "\""),
      "p.json");
  EXPECT_TRUE(gradient(slices).accumulate_weights);
  EXPECT_TRUE(gradient(slices).dynamic_scale);
  EXPECT_EQ(gradient(slices).loss_scale, 8);
  EXPECT_EQ(gradient(slices).slice, GroupId{0});
  const auto collective = [&](const std::string& attributes) {
    return reduce(parse_plan(
        replaced(old, R"("kind":"all_reduce",)", R"("kind":"all_reduce","attributes":")" + attributes + "\","), "p.json"));
  };
  EXPECT_EQ(collective("max").combine, Combine::Max);
  EXPECT_EQ(collective("mean").combine, Combine::Mean);
  EXPECT_EQ(collective("servers=3").servers, 3);
  EXPECT_TRUE(collective("accumulate").accumulate);
  EXPECT_EQ(collective("slice=" + small_plan().groups[0].name).slice, GroupId{0});
  const auto wrong = [&](const std::string& attributes) {
    return message(replaced(old, R"("accumulate_weights":true)", R"("attributes":")" + attributes + "\""));
  };
  EXPECT_EQ(wrong("sideways"),
            "p.json: segments[1].instructions[1].compute.attributes: found \"sideways\", expected attributes that "
            "the instruction has, not \"sideways\"");
  EXPECT_NE(wrong("slice=nobody").find("expected the name of a group after slice="), std::string::npos)
      << wrong("slice=nobody");
}

}  // namespace foreshard::plan_json_version1_test
