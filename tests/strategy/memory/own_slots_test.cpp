#include "strategy/memory/own_slots.h"

#include <limits>

#include "core/check/check_plan.h"
#include "core/result/memory_timeline.h"
#include "core/result/order_bound.h"
#include "strategy/lower/memory_planner.h"
#include "tests/strategy/support_lower.h"

namespace foreshard::own_slots_test {

// The last stage of two under zb-v is at 1.06 of its order bound with one offset for all uses of a slot; the first one is within 5 % and stays.
TEST(OwnSlots, OnlyWhatIsFarAboveItsBoundIsPackedAnew) {
  const Strategy s{.dp = 8,
                   .pp = 2,
                   .virtual_stages = 2,
                   .pipeline = {.schedule = Schedule::ZeroBubbleV},
                   .batch = {.micro = 1, .global = 256},
                   .zero = {.stage = 1}};
  const auto answer =
      tuned_plan(load_model("gpt2-124m"), load_cluster("dgx-a100-x2"), s, {.ignore_memory = true, .pack_by_order = false});
  Plan plan = std::get<Lowered>(answer).plan;
  plan_memory(plan, {.by_order = true});
  const std::vector<Bytes> found = order_bounds(plan);
  const Plan before = plan;
  pack_own_slots(plan, {std::nullopt, std::nullopt}, kBlockAlignment);
  EXPECT_EQ(plan, before);
  const std::vector<std::optional<Bytes>> bounds = {found[0], found[1]};
  pack_own_slots(plan, bounds, kBlockAlignment);
  EXPECT_EQ(plan.roles[0], before.roles[0]);
  EXPECT_GT(arena_bytes(before.roles[1], Space::Device).value, found[1].value * 1.05);
  EXPECT_LE(arena_bytes(plan.roles[1], Space::Device).value, found[1].value * 1.05);
  EXPECT_EQ(order_bounds(plan), found);
  EXPECT_TRUE(check_plan(plan).empty());

  // Parts of what does not fit are bytes of the arena, not those of all slots together.
  plan.roles[0].buffers.clear();
  plan.reserve = {std::numeric_limits<std::int64_t>::max() / 2};
  const auto refused = does_not_fit(plan, load_cluster("dgx-a100-x2"));
  ASSERT_TRUE(refused);
  const std::size_t at = refused->reason.find("activations ");
  ASSERT_NE(at, std::string::npos) << refused->reason;
  const double activations = std::stod(refused->reason.substr(at + 12));
  EXPECT_GT(activations, 0.1);
  EXPECT_LE(activations, in_gib(arena_bytes(plan.roles[1], Space::Device))) << refused->reason;
}

}  // namespace foreshard::own_slots_test
