// The memory of a run: what the ranks acquire and release is what the plan says, nothing lives outside the arenas, nothing
// reads what is not alive.
#include <gtest/gtest.h>

#include <atomic>
#include <cmath>
#include <memory>
#include <utility>

#include "core/check/check_plan.h"
#include "exec/host/host_device.h"
#include "tests/exec/allocations.h"
#include "tests/exec/training.h"

namespace foreshard::memory_test {
namespace {

std::vector<Strategy> strategies() {
  return {{.batch = {.micro = 2}},
          {.tp = 2, .pp = 2, .sequence_parallel = true, .batch = {.micro = 1}},
          {.dp = 2,
           .pp = 2,
           .batch = {.micro = 1},
           .zero = {.stage = 3},
           .communication = {.overlap = Overlap{true, true, true, true}}},
          {.pp = 2, .virtual_stages = 2, .batch = {.micro = 1}, .recompute = {.kind = RecomputeKind::Full}},
          {.dp = 4, .batch = {.micro = 1}, .communication = {.algorithm = Algorithm::GatherToRoot, .credit = {1 << 30}}}};
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

// The others acquire its places too, and have nothing in them.
TEST(Memory, OnlyTheRootOfAGatherHasPlacesForWhatArrives) {
  Strategy strategy = strategies().back();
  strategy.communication.overlap = Overlap{.gradients = false};
  const Plan plan = lowered(tiny_mlp(), in_double(strategy));
  const Execution done = run(plan, training(1));
  const auto gathered = std::ranges::find(plan.roles[0].buffers, "gathered.0", &Buffer::name);
  ASSERT_NE(gathered, plan.roles[0].buffers.end());
  constexpr auto kCommunication = static_cast<std::size_t>(Category::Communication);
  for (std::size_t r = 0; r < 4; ++r) EXPECT_EQ(done.peaks[r][kCommunication], r == 0 ? gathered->bytes : Bytes{}) << r;
  EXPECT_GT(sum(done.peaks[0]), sum(done.peaks[1]));
}

// On one stream in one order the blocks alive together do not depend on timing.
TEST(Memory, OneStreamHasThePeakOfItsOrder) {
  const Plan plan = lowered(tiny_gpt(), in_double({.batch = {.micro = 2}}));
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

// One byte before or behind any block is seen, and the block named.
TEST(Memory, AByteOutsideABlockIsSeen) {
  const Plan plan = lowered(tiny_gpt(), in_double({.batch = {.micro = 2}}));
  Stop stop;
  HostDevice device(stop, nullptr);
  const RankMemory memory(plan, {0}, device, {.guards = true});
  EXPECT_EQ(memory.broken_guard(), "");
  const std::vector<Buffer>& buffers = plan.roles[0].buffers;
  for (std::size_t b = 0; b < buffers.size(); ++b)
    for (const std::int64_t at : {std::int64_t{-1}, buffers[b].bytes.value}) {
      std::byte& byte = memory.address(BufferId{static_cast<std::int32_t>(b)})[at];
      const std::byte before = std::exchange(byte, std::byte{0x11});
      EXPECT_NE(memory.broken_guard().find("slot"), std::string::npos) << buffers[b].name << " " << at;
      byte = before;
      ASSERT_EQ(memory.broken_guard(), "") << buffers[b].name << " " << at;
    }
}

// The plan of one rank; the scores of the first layer are released before the softmax reads them.
Plan released_too_early() {
  Plan plan = lowered(tiny_gpt(), in_double({.batch = {.micro = 2}}));
  for (Segment& segment : plan.segments)
    for (std::size_t i = 1; i < segment.instructions.size(); ++i) {
      Instruction& at = segment.instructions[i];
      if (at.releases.empty() || at.name != "softmax") continue;
      Instruction& before = segment.instructions[i - 1];
      before.releases.insert(before.releases.end(), at.releases.begin(), at.releases.end());
      at.releases.clear();
      return plan;
    }
  ADD_FAILURE() << "no softmax releases a block";
  return plan;
}

// What is read after its release is not a number when memory is poisoned; check_plan refuses such a plan.
TEST(Memory, PoisonShowsAReadAfterARelease) {
  const Plan plan = released_too_early();
  EXPECT_FALSE(check_plan(plan).empty());
  ExecuteOptions options = training(1);
  options.checks.poison = true;
  EXPECT_FALSE(std::isfinite(run(plan, options).steps[0].loss));
}

TEST(Memory, ABlockThatIsReleasedTwiceStopsTheRun) {
  Plan plan = lowered(tiny_gpt(), in_double({.batch = {.micro = 2}}));
  bool planted = false;
  for (Segment& segment : plan.segments)
    for (Instruction& instruction : segment.instructions)
      if (!planted && instruction.name == "softmax" && !instruction.releases.empty()) {
        instruction.releases.push_back(instruction.releases.back());
        planted = true;
      }
  ASSERT_TRUE(planted);
  try {
    run(plan, training(1));
    FAIL() << "nobody noticed";
  } catch (const DeviceError& error) {
    EXPECT_NE(std::string(error.what()).find("it is not alive"), std::string::npos) << error.what();
  }
}

// A block that is too small for its operator: the plan is refused before anything runs.
TEST(Memory, AnOperandThatIsTooSmallIsRefused) {
  Plan plan = lowered(tiny_gpt(), in_double({.batch = {.micro = 2}}));
  Instruction& first = plan.segments[plan.roles[0].actions[0].segment.index()].instructions[0];
  first.writes[0].length = Bytes{64};
  EXPECT_THROW(execute(plan, training(1)), Error);
}

// The number of allocations does not depend on the number of steps: a step makes none.
TEST(Memory, AStepAllocatesNothing) {
  const Plan plan = lowered(tiny_gpt(), in_double({.dp = 2, .pp = 2, .batch = {.micro = 1}, .zero = {.stage = 1}}));
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
  // The count sees one that is planted: 4 more steps, each of them.
  std::atomic<std::int64_t> instructions = 0;
  const auto planted = [&](int steps) {
    ExecuteOptions options = training(steps);
    options.tensors = false;
    instructions = 0;
    options.before = [&](RankId, int, int, int) {
      ++instructions;
      const std::unique_ptr<int> made = std::make_unique<int>(1);
      std::atomic_signal_fence(std::memory_order_seq_cst);
    };
    const std::int64_t before = allocations();
    run(plan, options);
    return allocations() - before - instructions;
  };
  EXPECT_EQ(planted(6), planted(2));
  EXPECT_GT(instructions, 100);
}

TEST(Memory, AnInfeasiblePlanFailsBeforeTheFirstStep) {
  Plan plan = lowered(tiny_gpt(), in_double({.pp = 2, .batch = {.micro = 2}}));
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
}  // namespace foreshard::memory_test
