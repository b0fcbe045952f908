#include "strategy/memory/ordered_blocks.h"

#include <gtest/gtest.h>

#include <set>

#include "strategy/memory/block_meetings.h"
#include "tests/strategy/support_lower.h"

namespace foreshard::ordered_blocks_test {
namespace {

constexpr OrderedLimits kMost{.steps = 100'000, .blocks = 10'000};

// Whether every instruction that acquires or releases a block of this buffer is on the compute stream.
bool on_compute(const Plan& plan, const Role& role, BufferId buffer) {
  for (const Action& action : role.actions)
    for (const Instruction& run : plan.segments[action.segment.index()].instructions)
      for (const auto* blocks : {&run.acquires, &run.releases})
        for (const Block& block : *blocks)
          if (block.buffer == buffer && run.stream.value != 0) return false;
  return true;
}

// Blocks of the compute stream alone meet exactly where their lifetimes overlap; of the others some may be kept apart by waits, but none meets
// another outside of its lifetime.
void expect_order(const Lowered& job) {
  for (std::size_t r = 0; r < job.plan.roles.size(); ++r) {
    const OrderedBlocks found =
        ordered_blocks(job.plan, find_meeting_points(job.plan), {static_cast<std::int32_t>(r)}, Space::Device, kMost);
    ASSERT_FALSE(found.blocks.empty());
    ASSERT_EQ(found.meets.blocks(), found.blocks.size());
    std::vector<TimedBlock> timed;
    std::vector<char> plain;
    for (const OrderedBlock& block : found.blocks) {
      timed.push_back(block.block);
      plain.push_back(on_compute(job.plan, job.plan.roles[r], block.buffer));
    }
    const BlockPairs overlapping = overlaps(timed);
    for (int a = 0; a < static_cast<int>(timed.size()); ++a)
      for (int b = 0; b < static_cast<int>(timed.size()); ++b) {
        const bool meets = found.meets.has(a, b),
                   both = plain[static_cast<std::size_t>(a)] && plain[static_cast<std::size_t>(b)];
        ASSERT_EQ(meets, found.meets.has(b, a));
        ASSERT_TRUE(!meets || overlapping.has(a, b)) << a << " " << b;
        ASSERT_TRUE(meets || !both || !overlapping.has(a, b)) << a << " " << b;
      }
  }
}

TEST(OrderedBlocks, OnComputeLifetimesDecide) {
  expect_order(lowered("vgg-16", "pcie-a100-8", {.batch = {.global = 64}, .zero = {.stage = 3}}));
  expect_order(lowered("bert-large", "dgx-a100", {.tp = 2, .batch = {.global = 8}, .zero = {.stage = 1}}));
}

// Nothing is said of runs that are longer, or have more blocks, than asked for.
TEST(OrderedBlocks, LongRunsAreNotLookedAt) {
  const Lowered job = lowered("bert-large", "dgx-a100", {.batch = {.global = 8}});
  std::size_t steps = 0;
  for (const Action& action : job.plan.roles[0].actions) steps += job.plan.segments[action.segment.index()].instructions.size();
  const auto within = [&](std::size_t most_steps, std::size_t most_blocks) {
    return ordered_blocks(job.plan, find_meeting_points(job.plan), {0}, Space::Device,
                          {.steps = static_cast<int>(most_steps), .blocks = static_cast<int>(most_blocks)})
        .blocks.size();
  };
  const std::size_t all = within(steps, 10'000);
  EXPECT_GT(all, 0U);
  EXPECT_EQ(within(steps, all), all);
  EXPECT_EQ(within(steps - 1, all), 0U);
  EXPECT_EQ(within(steps, all - 1), 0U);
}

// Every block that is not resident is there; a slot that a run does not use has no lifetime.
TEST(OrderedBlocks, AllBlocksThatAreNotResident) {
  const Lowered job = lowered("vgg-16", "pcie-a100-8", {.batch = {.global = 64}, .zero = {.stage = 3}});
  std::set<std::pair<int, int>> expected, found;
  std::set<int> alive;
  const Role& role = job.plan.roles[0];
  for (std::size_t b = 0; b < role.buffers.size(); ++b)
    if (role.buffers[b].space == Space::Device && !role.buffers[b].resident)
      for (std::size_t slot = 0; slot < role.buffers[b].offsets.size(); ++slot) expected.emplace(b, slot);
  for (const OrderedBlock& block : ordered_blocks(job.plan, find_meeting_points(job.plan), {0}, Space::Device, kMost).blocks) {
    found.emplace(block.buffer.value, block.slot);
    alive.insert(block.block.lifetimes.empty() ? -1 : block.buffer.value);
  }
  EXPECT_EQ(found, expected);
  alive.erase(-1);
  EXPECT_GT(alive.size(), expected.size() / 4);
}

}  // namespace
}  // namespace foreshard::ordered_blocks_test
