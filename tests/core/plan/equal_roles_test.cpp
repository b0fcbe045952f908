#include "core/plan/equal_roles.h"

#include <gtest/gtest.h>

#include "tests/core/support_plan.h"

namespace foreshard::equal_roles_test {
namespace {

using Firsts = std::vector<std::size_t>;

// small_plan with a third role that is like its first one, but for its name. Segments that only the third role runs follow the others.
Plan with_twin() {
  Plan plan = small_plan();
  Role twin = plan.roles[0];
  twin.name = "twin";
  const std::size_t segments = plan.segments.size();
  for (std::size_t s = 0; s < segments; ++s) {
    const Segment copy = plan.segments[s];
    plan.segments.push_back(copy);
  }
  for (Action& action : twin.actions) action.segment.value += static_cast<std::int32_t>(segments);
  plan.roles.push_back(std::move(twin));
  return plan;
}

Segment& first_segment(Plan& plan, std::size_t role) { return plan.segments[plan.roles[role].actions[0].segment.index()]; }

// The first action is a forward with the parameters "mb", by which no slot is numbered, and "slot".
TEST(EqualRoles, PeersAndMicrobatchesMayDiffer) {
  Plan plan = with_twin();
  EXPECT_EQ(first_equal_roles(plan), (Firsts{0, 1, 0}));
  plan.roles[2].actions[0].args[0] += 7;
  for (Action& action : plan.roles[2].actions)
    for (Does& does : action.does) does.stage += 5;
  for (Instruction& run : first_segment(plan, 2).instructions)
    if (auto* exchange = std::get_if<Exchange>(&run.what)) exchange->to->role_shift = -1;
  EXPECT_EQ(first_equal_roles(plan), (Firsts{0, 1, 0}));
}

TEST(EqualRoles, WhatDecidesOnMemoryMayNot) {
  const auto differs = [](auto change) {
    Plan plan = with_twin();
    change(plan);
    return first_equal_roles(plan) == Firsts{0, 1, 2};
  };
  EXPECT_TRUE(differs([](Plan& plan) { plan.roles[2].actions[0].args[1] ^= 1; }));
  EXPECT_TRUE(differs([](Plan& plan) { plan.roles[2].actions.pop_back(); }));
  EXPECT_TRUE(differs([](Plan& plan) { plan.roles[2].buffers.back().bytes += Bytes{256}; }));
  EXPECT_TRUE(differs([](Plan& plan) { plan.roles[2].buffers.back().offsets.front() += Bytes{256}; }));
  EXPECT_TRUE(differs([](Plan& plan) { plan.roles[2].buffers.back().resident ^= true; }));
  EXPECT_TRUE(differs([](Plan& plan) { ++plan.roles[2].events.back().slots; }));
  EXPECT_TRUE(differs([](Plan& plan) { first_segment(plan, 2).instructions.back().after.clear(); }));
  EXPECT_TRUE(differs([](Plan& plan) { first_segment(plan, 2).instructions.back().releases.clear(); }));
  EXPECT_TRUE(differs([](Plan& plan) { first_segment(plan, 2).instructions.front().waits.clear(); }));
  // A micro-batch that numbers a slot decides which block it is.
  EXPECT_TRUE(differs([](Plan& plan) {
    for (const std::size_t r : {0, 2}) first_segment(plan, r).instructions.back().reads.front().slot.which = ParamId{0};
    plan.roles[2].actions[0].args[0] ^= 1;
  }));
}

TEST(EqualRoles, SlotsAndOffsetsAreCopied) {
  Plan plan = with_twin();
  plan.roles[2].actions[0].args[0] = 9;
  const Plan before = plan;
  plan.roles[0].actions[0].args[1] ^= 1;
  plan.roles[0].buffers[3].offsets = {{512}, {1024}, {2048}};
  copy_memory(plan, 0, 2);
  EXPECT_EQ(plan.roles[2].actions[0].args, (std::vector<std::int32_t>{9, plan.roles[0].actions[0].args[1]}));
  EXPECT_EQ(plan.roles[2].buffers[3].offsets, plan.roles[0].buffers[3].offsets);
  EXPECT_EQ(plan.roles[2].name, before.roles[2].name);
  EXPECT_EQ(first_equal_roles(plan), (Firsts{0, 1, 0}));
}

}  // namespace
}  // namespace foreshard::equal_roles_test
