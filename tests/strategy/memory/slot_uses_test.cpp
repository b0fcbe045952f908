#include "strategy/memory/slot_uses.h"

#include "core/result/memory_timeline.h"
#include "strategy/lower/memory_planner.h"
#include "strategy/memory/slot_numbers.h"
#include "tests/strategy/support_lower.h"

namespace foreshard::slot_uses_test {
namespace {

constexpr std::int64_t kBlock = 2 << 20;  // less is not packed anew

Instruction at(std::vector<Block> acquires, std::vector<Block> releases) {
  return {.what = Mark{}, .stream = {0}, .acquires = std::move(acquires), .releases = std::move(releases)};
}

Bytes arena(const Plan& plan) { return arena_bytes(plan.roles[0], Space::Device); }

Block numbered(int buffer) { return {{buffer}, {ParamId{buffer}}}; }

// A segment per entry, each an action, with a parameter for each buffer. All slots are 0.
Plan plan_of(int buffers, const std::vector<std::vector<Instruction>>& segments) {
  Plan plan{.roles = {{.name = "stage 0", .streams = {{.name = "compute"}}}}};
  std::vector<Param> params;
  for (int b = 0; b < buffers; ++b) {
    plan.roles[0].buffers.push_back({.name = std::string(1, static_cast<char>('a' + b)), .bytes = {kBlock}, .offsets = {{}}});
    params.push_back({plan.roles[0].buffers.back().name, ParamKind::Slot});
  }
  for (const std::vector<Instruction>& instructions : segments) {
    plan.roles[0].actions.push_back({.segment = {static_cast<std::int32_t>(plan.segments.size())},
                                     .args = std::vector<std::int32_t>(params.size(), 0),
                                     .does = {{.work = Work::F}}});
    plan.segments.push_back({.params = params, .instructions = instructions});
  }
  return plan;
}

std::vector<Instruction> together(int a, int b) {
  return {at({numbered(a), numbered(b)}, {}), at({}, {numbered(a), numbered(b)})};
}

// a meets b, then c; then b meets c. No more than two are alive, but one offset for each needs three places.
Plan two_by_two() { return plan_of(3, {together(0, 1), together(0, 2), together(1, 2)}); }

}  // namespace

TEST(SlotUses, BlocksThatMeetTwoByTwoNeedTwoPlaces) {
  Plan plan = two_by_two();
  plan_memory(plan, {.by_order = true});
  EXPECT_EQ(arena(plan), Bytes{3 * kBlock});
  Plan whole = two_by_two();
  plan_memory(whole, {.by_order = true, .own_slots = true});
  EXPECT_EQ(arena(whole), Bytes{2 * kBlock});
}

// Each of the three has two uses, which get the numbers 0 and 1.
TEST(SlotUses, EachUseHasANumber) {
  Plan plan = two_by_two();
  ASSERT_TRUE(number_uses(plan, {0}));
  EXPECT_EQ(plan.roles[0].actions[0].args, (std::vector<std::int32_t>{0, 0, 0}));
  EXPECT_EQ(plan.roles[0].actions[1].args, (std::vector<std::int32_t>{1, 0, 0}));
  EXPECT_EQ(plan.roles[0].actions[2].args, (std::vector<std::int32_t>{0, 1, 1}));
  for (const Buffer& buffer : plan.roles[0].buffers) EXPECT_EQ(buffer.offsets.size(), 2U);
  EXPECT_FALSE(number_uses(plan, {0}));  // nothing is used twice any more
}

// What the last action acquires, the first one of the next run releases: this is one use.
TEST(SlotUses, AUseMayCrossTheEndOfARun) {
  const std::vector<Instruction> acquire = {at({numbered(0)}, {})}, release = {at({}, {numbered(0)})};
  Plan plan = plan_of(1, {release, acquire, release, acquire});
  ASSERT_TRUE(number_uses(plan, {0}));
  std::vector<std::int32_t> numbers;
  for (const Action& action : plan.roles[0].actions) numbers.push_back(action.args[0]);
  EXPECT_EQ(numbers, (std::vector<std::int32_t>{0, 1, 1, 0}));
}

// Waits for the slot of an event, numbers that are fixed somewhere, and memory of the host.
TEST(SlotUses, OtherNumbersStay) {
  Plan events = two_by_two(), fixed = events, host = events;
  for (int p = 0; p < 3; ++p) events.segments[p < 2 ? 0 : 1].instructions[0].records.push_back({{0}, {ParamId{p}}});
  for (int b = 0; b < 3; ++b) fixed.segments[0].instructions[0].reads.push_back({.buffer = {b}, .slot = {0}});
  for (Buffer& buffer : host.roles[0].buffers) buffer.space = Space::PinnedHost;
  for (Plan* plan : {&events, &fixed, &host}) {
    const Plan before = *plan;
    EXPECT_FALSE(number_uses(*plan, {0}));
    EXPECT_EQ(*plan, before);
  }
}

// The same within a segment: s is beside t, then u beside s, then t beside u, all at fixed slots.
TEST(SlotUses, LifetimesOfScratchGetBuffers) {
  const Block s{{0}, {0}}, t{{1}, {0}}, u{{2}, {0}};
  Plan plan = plan_of(3, {{at({s, t}, {}), at({}, {s, t}), at({s, u}, {}), at({}, {s, u}), at({t, u}, {}), at({}, {t, u})}});
  Plan before = plan;
  plan_memory(before, {.by_order = true});
  EXPECT_EQ(arena(before), Bytes{3 * kBlock});
  Plan split = plan;
  ASSERT_TRUE(split_scratch(split));
  ASSERT_EQ(split.roles[0].buffers.size(), 6U);
  EXPECT_EQ(split.segments[0].instructions[2].acquires, (std::vector<Block>{{{3}, {0}}, u}));
  EXPECT_EQ(split.segments[0].instructions[3].releases, (std::vector<Block>{{{3}, {0}}, u}));
  EXPECT_FALSE(split_scratch(split));
  plan_memory(plan, {.by_order = true, .own_slots = true});
  EXPECT_EQ(arena(plan), Bytes{2 * kBlock});
}

}  // namespace foreshard::slot_uses_test
