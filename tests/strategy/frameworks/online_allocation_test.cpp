#include "strategy/frameworks/online_allocation.h"

#include "core/result/order_bound.h"
#include "tests/strategy/support_lower.h"

namespace foreshard::online_allocation_test {
namespace {

constexpr std::int64_t kMiB = 1 << 20;

// In MiB, all from segments of their own:
//
//   resident 30                     reserved 30
//   a 12  acquired, b 16 acquired   reserved 58: the peak of what was asked for
//   a     released, c 14 acquired   a's segment is too small: reserved 72, though 60 are alive
//   b, c  released
//
// In the second run each finds its own segment again.
TEST(OnlineAllocation, ReservesWhatCannotBeReused) {
  const auto at = [](std::vector<Block> acquires, std::vector<Block> releases) {
    return Instruction{.what = Mark{}, .stream = {0}, .acquires = std::move(acquires), .releases = std::move(releases)};
  };
  const Block a{.buffer = {1}}, b{.buffer = {2}}, c{.buffer = {3}};
  Plan plan{.roles = {{.name = "stage 0", .streams = {{.name = "compute"}}}}};
  Role& role = plan.roles[0];
  for (const std::int64_t size : {30, 12, 16, 14}) role.buffers.push_back({.bytes = {size * kMiB}, .offsets = {Bytes{}}});
  role.buffers[0].resident = true;
  role.actions = {{.segment = {0}}};
  plan.segments = {{.instructions = {at({a, b}, {a}), at({c}, {b, c})}}};
  const OnlineAllocation online = allocate_online(plan, {0});
  EXPECT_EQ(online.asked_peak, Bytes{60 * kMiB});
  EXPECT_EQ(online.allocated_peak, Bytes{60 * kMiB});
  EXPECT_EQ(online.reserved, Bytes{72 * kMiB});
  EXPECT_DOUBLE_EQ(online.fragmentation(), 0.2);
  EXPECT_EQ(allocate_online(plan, {0}, Space::PinnedHost).reserved, Bytes{});
}

// An allocator that does not know the future needs at least the peak of its own order, which no timing of the plan exceeds.
TEST(OnlineAllocation, OfPlansIsAboveWhatIsAlive) {
  for (const Strategy& strategy :
       {Strategy{.dp = 8}, Strategy{.dp = 8, .zero = {.stage = 3}},
        Strategy{.dp = 2, .pp = 4, .pipeline = {.schedule = Schedule::ZeroBubbleH1}, .batch = {.global = 32}}}) {
    const Plan plan = lowered("gpt2-355m", "dgx-a100", strategy).plan;
    for (std::size_t r = 0; r < plan.roles.size(); ++r) {
      const RoleId role{static_cast<std::int32_t>(r)};
      const OnlineAllocation online = allocate_online(plan, role);
      EXPECT_LE(online.asked_peak, online.allocated_peak);
      EXPECT_LE(online.allocated_peak, online.reserved);
      EXPECT_LE(online.asked_peak, order_bound(plan, role));
      EXPECT_LT(online.fragmentation(), 0.5);
    }
  }
}

}  // namespace
}  // namespace foreshard::online_allocation_test
