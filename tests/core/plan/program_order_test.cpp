#include "core/plan/program_order.h"

#include <gtest/gtest.h>

#include <map>
#include <random>

#include "core/check/check_plan_order.h"
#include "tests/core/support_plan.h"

namespace foreshard::program_order_test {
namespace {

// reach[a][b]: the end of a comes before the begin of b, from the written-out edges of `runs` runs and their closure.
std::vector<std::vector<bool>> closure(const Plan& plan, const Role& role, int runs) {
  struct At {
    const Action* action;
    const Instruction* instruction;
    std::size_t first;  // step of the action's first instruction
  };
  std::vector<At> steps;
  for (int run = 0; run < runs; ++run)
    for (const Action& action : role.actions) {
      const std::size_t first = steps.size();
      for (const Instruction& i : plan.segments[action.segment.index()].instructions) steps.push_back({&action, &i, first});
    }
  std::vector<std::vector<bool>> reach(steps.size(), std::vector<bool>(steps.size(), false));
  std::map<std::pair<int, int>, std::size_t> records;
  for (std::size_t b = 0; b < steps.size(); ++b) {
    const auto follows = [&](std::size_t a) {
      reach[a][b] = true;
      for (std::size_t c = 0; c < a; ++c)
        if (reach[c][a]) reach[c][b] = true;
    };
    for (std::size_t a = 0; a < b; ++a)
      if (steps[a].instruction->stream == steps[b].instruction->stream) follows(a);
    for (const std::int32_t i : steps[b].instruction->after) follows(steps[b].first + static_cast<std::size_t>(i));
    const auto key = [&](const EventUse& e) { return std::pair{e.event.value, value_of(e.slot, *steps[b].action)}; };
    for (const EventUse& e : steps[b].instruction->waits)
      if (records.count(key(e))) follows(records[key(e)]);
    for (const EventUse& e : steps[b].instruction->records) records[key(e)] = b;
  }
  return reach;
}

}  // namespace

TEST(ProgramOrder, AgreesWithTheClosureOfAllEdges) {
  std::size_t pairs = 0;
  for (std::uint32_t seed = 0; seed < 150; ++seed) {
    Plan plan = seed == 0 ? small_plan() : random_plan(seed);
    for (Role& role : plan.roles) role.ahead.clear();  // program_test.cpp has those of overlapping runs
    for (std::size_t r = 0; r < plan.roles.size(); ++r) {
      const ProgramOrder order(plan, find_meeting_points(plan), RoleId{static_cast<std::int32_t>(r)}, 2);
      const auto reach = closure(plan, plan.roles[r], 2);
      ASSERT_EQ(order.count(), static_cast<int>(reach.size()));
      for (int b = 0; b < order.count(); ++b)
        for (int a = 0; a < b; ++a, ++pairs)
          ASSERT_EQ(order.clocks().before(a, b), reach[static_cast<std::size_t>(a)][static_cast<std::size_t>(b)])
              << seed << ": " << a << ", " << b;
    }
  }
  EXPECT_GT(pairs, 5000U);
}

TEST(CheckOrder, AWaitWithoutRecordInAnyRunIsUnbound) {
  Plan plan = small_plan();
  EXPECT_TRUE(CheckOrder(plan, RoleId{0}, 1).unbound().empty());  // the first waits for "sent" are carried over
  instruction_named(plan, "forward.0", "send").records.clear();
  const CheckOrder order(plan, RoleId{0}, 2);
  ASSERT_FALSE(order.unbound().empty());
  EXPECT_EQ(order.unbound()[0].wait, (EventUse{{1}, {ParamId{1}}}));
}

}  // namespace foreshard::program_order_test
