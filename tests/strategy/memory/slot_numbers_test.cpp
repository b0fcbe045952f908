#include "strategy/memory/slot_numbers.h"

#include <algorithm>

#include "core/check/check_plan.h"
#include "core/result/memory_timeline.h"
#include "core/result/order_bound.h"
#include "strategy/lower/memory_planner.h"
#include "tests/strategy/support_lower.h"

namespace foreshard::slot_numbers_test {
namespace {

Instruction at(std::vector<Block> acquires, std::vector<Block> releases) {
  return {.what = Mark{}, .stream = {0}, .acquires = std::move(acquires), .releases = std::move(releases)};
}

Bytes arena(const Plan& plan) { return arena_bytes(plan.roles[0], Space::Device); }

constexpr std::int64_t kBlock = 2 << 20;  // less is not packed anew

// Two micro-batches in flight. A forward leaves a; its backward releases a and then needs scratch s.
//
//   action           F0  F1  B0  F2  B1  B2
//   a, slot 0        [======)    [========)
//   a, slot 1            [===========)
//   s                        [=)     [=)[=)     in B0 beside slot 1, in B1 beside slot 0
Plan two_in_flight() {
  const Slot slot{ParamId{0}};
  const Block a{{0}, slot}, s{.buffer = {1}};
  Plan plan{.roles = {{.name = "stage 0", .streams = {{.name = "compute"}}}}};
  Role& role = plan.roles[0];
  role.buffers = {{.name = "a", .bytes = {kBlock}, .offsets = {{}, {}}}, {.name = "s", .bytes = {kBlock}, .offsets = {{}}}};
  const std::vector<Param> params = {{"pooled", ParamKind::Slot}};
  plan.segments = {{.name = "F", .params = params, .instructions = {at({a}, {})}},
                   {.name = "B", .params = params, .instructions = {at({}, {a}), at({s}, {}), at({}, {s})}}};
  for (const auto& [segment, number] : {std::pair{0, 0}, {0, 1}, {1, 0}, {0, 0}, {1, 1}, {1, 0}})
    role.actions.push_back({.segment = {segment}, .args = {number}, .does = {{.work = segment == 0 ? Work::F : Work::B}}});
  return plan;
}

}  // namespace

// With one offset s is beside both slots; with the number of its micro-batch it lies in the slot that this one has released.
// The second role of three, with its segments, leaves the plan and comes back changed.
TEST(SlotNumbers, RolesAloneHaveTheSegmentsThatTheyRun) {
  Plan plan = two_in_flight();
  plan.roles = {plan.roles[0], plan.roles[0], plan.roles[0]};
  for (const std::size_t s : {0, 1}) plan.segments.push_back(plan.segments[s]);
  for (Action& action : plan.roles[1].actions) action.segment.value += 2;
  const Plan before = plan;
  Plan alone = roles_alone(plan, {1});
  EXPECT_EQ(alone.roles, std::vector<Role>{plan.roles[1]});
  EXPECT_EQ(alone.segments, (std::vector<Segment>{{}, {}, plan.segments[2], plan.segments[3]}));
  put_back(alone, {1}, plan);
  EXPECT_EQ(plan, before);
  alone.segments[3].name = "other", alone.roles[0].name = "changed";
  put_back(alone, {1}, plan);
  EXPECT_EQ(plan.segments[3].name, "other");
  EXPECT_EQ(plan.roles[1].name, "changed");
  EXPECT_EQ(plan.segments[1], before.segments[1]);
  EXPECT_EQ(plan.roles[2], before.roles[2]);
}

TEST(SlotNumbers, ScratchLiesInTheSlotOfItsMicrobatch) {
  Plan plan = two_in_flight();
  plan_memory(plan);
  EXPECT_EQ(arena(plan), Bytes{3 * kBlock});
  Plan whole = plan;
  ASSERT_TRUE(number_scratch(plan));
  plan_memory(plan, {.by_order = true});
  EXPECT_EQ(arena(plan), Bytes{2 * kBlock});
  plan_memory(whole, {.by_order = true});  // does the same
  EXPECT_EQ(whole, plan);
  EXPECT_EQ(plan.roles[0].buffers[1].offsets, plan.roles[0].buffers[0].offsets);
}

// Planned slot by slot, scratch is scratch still: all its slots at one offset, for one action runs at a time.
TEST(SlotNumbers, NumberedScratchHasOneOffsetSlotBySlot) {
  Plan plan = two_in_flight();
  ASSERT_TRUE(number_scratch(plan));
  plan_memory(plan);
  EXPECT_EQ(arena(plan), Bytes{3 * kBlock});
  EXPECT_EQ(plan.roles[0].buffers[1].offsets[0], plan.roles[0].buffers[1].offsets[1]);
}

// Each fixed slot becomes a buffer.
TEST(SlotNumbers, FixedSlotsBecomeBuffers) {
  Plan plan = two_in_flight();
  plan.roles[0].buffers[1].offsets = {{}, {}};
  const Block other{{1}, {1}};
  plan.segments[1].instructions[1].acquires.push_back(other);
  plan.segments[1].instructions[2].releases.push_back(other);
  ASSERT_TRUE(number_scratch(plan));
  ASSERT_EQ(plan.roles[0].buffers.size(), 3U);
  EXPECT_EQ(plan.roles[0].buffers[2].name, "s, 1");
  for (const std::size_t buffer : {1U, 2U}) EXPECT_EQ(plan.roles[0].buffers[buffer].offsets.size(), 2U);
  const std::vector<Block>& acquired = plan.segments[1].instructions[1].acquires;
  EXPECT_EQ(acquired, (std::vector<Block>{{{1}, {ParamId{0}}}, {{2}, {ParamId{0}}}}));
}

TEST(SlotNumbers, OneInFlightIsLeftAlone) {
  Plan plan = two_in_flight();
  for (Action& action : plan.roles[0].actions) action.args = {0};
  const Plan before = plan;
  EXPECT_FALSE(number_scratch(plan));
  EXPECT_FALSE(number_kept(plan));
  EXPECT_EQ(plan, before);
}

// What a part of the time in flight numbers gets the number of all of it, and that many slots.
TEST(SlotNumbers, PartsOfTheTimeInFlightShareItsNumber) {
  Plan plan = two_in_flight();
  const Block early{{1}, {ParamId{1}}};
  plan.roles[0].buffers[1].offsets = {{}};
  for (Segment& segment : plan.segments) segment.params.push_back({"pooled_early", ParamKind::Slot});
  plan.segments[0].instructions = {at({{{0}, {ParamId{0}}}, early}, {})};
  plan.segments[1].instructions = {at({}, {early}), at({}, {{{0}, {ParamId{0}}}})};
  for (Action& action : plan.roles[0].actions) action.args.push_back(0);
  ASSERT_TRUE(number_kept(plan));
  EXPECT_EQ(plan.segments[0].instructions[0].acquires[1], (Block{{1}, {ParamId{0}}}));
  EXPECT_EQ(plan.segments[1].instructions[0].releases[0], (Block{{1}, {ParamId{0}}}));
  EXPECT_EQ(plan.roles[0].buffers[1].offsets.size(), 2U);
}

// On whole plans: they stay sound, and lose what was above the order bound.
TEST(SlotNumbers, PlansStaySound) {
  for (const Schedule schedule : {Schedule::ZeroBubbleH1, Schedule::ZeroBubbleV}) {
    Strategy s{.dp = 2, .pp = 2, .pipeline = {.schedule = schedule}, .batch = {.micro = 1, .global = 32}, .zero = {.stage = 1}};
    if (schedule == Schedule::ZeroBubbleV) s.virtual_stages = 2;
    const Lowered job = lowered("gpt2-124m", "dgx-a100", s);
    EXPECT_LE(fragmentation(job.plan), 1.05);
    Plan other = job.plan;
    number_scratch(other);
    number_kept(other);
    plan_memory(other, {.by_order = true});
    const auto defects = check_plan(other);
    EXPECT_TRUE(defects.empty()) << defects.front().where << ": " << defects.front().what;
  }
}

}  // namespace foreshard::slot_numbers_test
