#include "strategy/memory/ordered_blocks.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <set>

#include "strategy/memory/block_meetings.h"
#include "tests/strategy/support_lower.h"

namespace foreshard {
namespace {

constexpr int kMost = 100'000;

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
    const OrderedBlocks found = ordered_blocks(job.plan, {static_cast<std::int32_t>(r)}, Space::Device, kMost);
    ASSERT_FALSE(found.blocks.empty());
    ASSERT_EQ(found.meets.size(), found.blocks.size());
    std::vector<TimedBlock> timed;
    std::vector<char> plain;
    for (const OrderedBlock& block : found.blocks) {
      timed.push_back(block.block);
      plain.push_back(on_compute(job.plan, job.plan.roles[r], block.buffer));
    }
    const std::vector<std::vector<int>> overlaps = meetings(timed);
    for (std::size_t b = 0; b < timed.size(); ++b) {
      ASSERT_TRUE(std::ranges::is_sorted(found.meets[b]));
      ASSERT_TRUE(std::ranges::includes(overlaps[b], found.meets[b]));
      for (const int other : found.meets[b])  // both know of each other
        ASSERT_TRUE(std::ranges::binary_search(found.meets[static_cast<std::size_t>(other)], static_cast<int>(b)));
      for (const int other : overlaps[b]) {
        const bool meets = std::ranges::binary_search(found.meets[b], other);
        if (plain[b] && plain[static_cast<std::size_t>(other)]) {
          ASSERT_TRUE(meets) << b << " " << other;
        }
      }
    }
  }
}

TEST(OrderedBlocks, OnComputeLifetimesDecide) {
  expect_order(lowered("vgg-16", "pcie-a100-8", {.batch = {.global = 64}, .zero = {.stage = 3}}));
  expect_order(lowered("bert-large", "dgx-a100", {.tp = 2, .batch = {.global = 8}, .zero = {.stage = 1}}));
}

// Nothing is said of runs that are longer than asked for.
TEST(OrderedBlocks, LongRunsAreNotLookedAt) {
  const Lowered job = lowered("bert-large", "dgx-a100", {.batch = {.global = 8}});
  std::size_t steps = 0;
  for (const Action& action : job.plan.roles[0].actions) steps += job.plan.segments[action.segment.index()].instructions.size();
  EXPECT_FALSE(ordered_blocks(job.plan, {0}, Space::Device, static_cast<int>(steps)).blocks.empty());
  EXPECT_TRUE(ordered_blocks(job.plan, {0}, Space::Device, static_cast<int>(steps) - 1).blocks.empty());
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
  for (const OrderedBlock& block : ordered_blocks(job.plan, {0}, Space::Device, kMost).blocks) {
    found.emplace(block.buffer.value, block.slot);
    alive.insert(block.block.lifetimes.empty() ? -1 : block.buffer.value);
  }
  EXPECT_EQ(found, expected);
  alive.erase(-1);
  EXPECT_GT(alive.size(), expected.size() / 4);
}

}  // namespace
}  // namespace foreshard
