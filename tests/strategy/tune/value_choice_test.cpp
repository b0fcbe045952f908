// `--offload-activations free-time` knows how the plan will be packed.
#include "strategy/tune/value_choice.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "core/cluster_file/cluster_file.h"
#include "core/result/memory_timeline.h"
#include "strategy/tune/tune.h"

namespace foreshard::value_choice_test {
namespace {

// Gathered parameters of fc6 and fc7 share bytes with activations only where blocks are packed by the order of the run.
Strategy pictures() { return {.dp = 8, .batch = {.micro = 4, .global = 32}, .zero = {.stage = 3}}; }

Lowered made(const Strategy& strategy, bool by_order = true) {
  auto answer = tuned_plan(load_model("vgg-16"), load_cluster("pcie-a100-8"), strategy, {.pack_by_order = by_order});
  if (const auto* refused = std::get_if<Infeasible>(&answer)) {
    ADD_FAILURE() << refused->reason;
    return {};
  }
  return std::get<Lowered>(std::move(answer));
}

Bytes arena(const Lowered& lowered) { return arena_bytes(lowered.plan.roles.front(), Space::Device); }

bool moves(const Lowered& lowered) {
  for (const Segment& segment : lowered.plan.segments)
    if (std::ranges::any_of(segment.instructions, [](const Instruction& run) { return run.name == "to host"; })) return true;
  return false;
}

}  // namespace

// What fits its budget by the order of the run stays where it is, though slot by slot it would not fit.
TEST(ValueChoice, NothingMovesWhereTheOrderMakesItFit) {
  const Lowered kept = made(pictures()), slots = made(pictures(), false);
  ASSERT_LT(arena(kept), arena(slots));
  Strategy s = pictures();
  s.offload.activations = OffloadedActivations::FreeTime;
  s.offload.budget = arena(kept);
  const Lowered same = made(s);
  EXPECT_FALSE(moves(same));
  EXPECT_EQ(arena(same), arena(kept));
  s.offload.budget = {arena(kept).value * 98 / 100};
  const Lowered less = made(s);
  EXPECT_TRUE(moves(less));
  EXPECT_LE(arena(less), s.offload.budget);
}

}  // namespace foreshard::value_choice_test
