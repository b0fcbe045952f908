// The memory of a run: what the ranks acquire and release is what the plan says, nothing lives outside the arenas, nothing
// reads what is not alive.
#include <gtest/gtest.h>

#include "tests/exec/allocations.h"
#include "tests/exec/training.h"

namespace foreshard {
namespace {

std::vector<Strategy> strategies() {
  return {{.micro_batch = 2},
          {.tp = 2, .pp = 2, .sequence_parallel = true, .micro_batch = 1},
          {.dp = 2, .pp = 2, .micro_batch = 1, .zero = 3, .overlap = {true, true, true, true}},
          {.pp = 2, .virtual_stages = 2, .micro_batch = 1, .recompute = {.kind = RecomputeKind::Full}}};
}

TEST(Memory, PeakOfTheRanksIsThatOfTheMeasuredTimeline) {
  for (const Strategy& strategy : strategies()) {
    const Plan plan = lowered(tiny_gpt(), in_double(strategy));
    for (const TimeMode time : {TimeMode::Wall}) {
      ExecuteOptions options = training(2);
      options.time = time;
      const Execution done = run(plan, options);
      ASSERT_EQ(done.result.memory.curves.size(), done.peaks.size());
      for (std::size_t r = 0; r < done.peaks.size(); ++r) {
        EXPECT_EQ(done.result.memory.curves[r].peak, done.peaks[r]) << "rank " << r;
        EXPECT_LE(sum(done.peaks[r]), done.result.memory.curves[r].arena);
        EXPECT_GT(sum(done.peaks[r]), sum(done.result.memory.curves[r].start));
      }
    }
  }
}

// On one stream in one order the blocks alive together do not depend on timing.
TEST(Memory, OneStreamHasThePeakOfItsOrder) {
  const Plan plan = lowered(tiny_gpt(), in_double({.micro_batch = 2}));
  const Execution wall = run(plan, training(1));
  ExecuteOptions options = training(1);
  options.time = TimeMode::Emulated;
  const Execution emulated = run(plan, options);
  EXPECT_EQ(sum(wall.peaks[0]), sum(emulated.result.memory.curves[0].peak));
}

TEST(Memory, PoisonAndGuardsChangeNoBit) {
  for (const Strategy& strategy : strategies()) {
    const Plan plan = lowered(tiny_gpt(), in_double(strategy));
    const Execution plain = run(plan, training(2));
    ExecuteOptions options = training(2);
    options.checks = {.guards = true, .poison = true};
    const Execution checked = run(plan, options);
    EXPECT_EQ(difference(plain, checked).largest(), 0);
  }
}

// A block that is too small for its operator: the plan is refused before anything runs.
TEST(Memory, AnOperandThatIsTooSmallIsRefused) {
  Plan plan = lowered(tiny_gpt(), in_double({.micro_batch = 2}));
  Instruction& first = plan.segments[plan.roles[0].actions[0].segment.index()].instructions[0];
  first.writes[0].length = Bytes{64};
  EXPECT_THROW(execute(plan, training(1)), Error);
}

// The number of allocations does not depend on the number of steps: a step makes none.
TEST(Memory, AStepAllocatesNothing) {
  const Plan plan = lowered(tiny_gpt(), in_double({.dp = 2, .pp = 2, .micro_batch = 1, .zero = 1}));
  const auto count = [&](int steps) {
    ExecuteOptions options = training(steps);
    options.tensors = false;
    options.barrier = true;
    const std::int64_t before = allocations();
    run(plan, options);
    return allocations() - before;
  };
  count(1);  // what is made once in a process
  const std::int64_t few = count(2), many = count(6);
  EXPECT_EQ(few, many);
}

TEST(Memory, AnInfeasiblePlanFailsBeforeTheFirstStep) {
  Plan plan = lowered(tiny_gpt(), in_double({.pp = 2, .micro_batch = 2}));
  plan.framework = {Bytes{1 << 20}};
  ExecuteOptions options = training(1);
  Bytes need = {};
  for (const Role& role : plan.roles) need = std::max(need, arena_bytes(role, Space::Device) + plan.framework);
  bool ran = false;
  options.on_step = [&](int, const StepReport&) { ran = true; };
  options.memory_limit = need - Bytes{1};
  const auto refused = execute(plan, options);
  ASSERT_TRUE(std::holds_alternative<Infeasible>(refused));
  EXPECT_NE(std::get<Infeasible>(refused).reason.find("for the model"), std::string::npos);
  EXPECT_FALSE(ran);
  options.memory_limit = need;
  EXPECT_TRUE(std::holds_alternative<Execution>(execute(plan, options)));
  EXPECT_TRUE(ran);
}

}  // namespace
}  // namespace foreshard
