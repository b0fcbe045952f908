// Choices that are open beside each other: trial plans for one of them have plain values for the others.
#include <gtest/gtest.h>

#include "core/check/check_plan.h"
#include "strategy/resolve/resolve.h"
#include "tests/strategy/support_lower.h"

namespace foreshard::open_choices_test {
namespace {

Strategy four_stages() { return {.dp = 1, .pp = 4, .batch = {.micro = 1, .global = 8}}; }

void expect_sound(const Strategy& strategy) {
  const Lowered made = lowered("gpt2-124m", "dgx-a100", strategy);
  EXPECT_FALSE(leaves_open(made.strategy) && !chooses_moves(made.strategy)) << to_json(made.strategy);
  EXPECT_TRUE(check_plan(made.plan).empty());
}

}  // namespace

TEST(OpenChoices, OffloadInFreeTimeBesideEachOtherOne) {
  Strategy away = four_stages();
  away.offload.activations = OffloadedActivations::FreeTime;
  Strategy split = away, layers = away, buckets = away;
  split.pipeline.layer_split = "auto";
  layers.recompute = {.kind = RecomputeKind::Each};
  buckets.pp = 2, buckets.dp = 2, buckets.communication.bucket = {-1};
  for (const Strategy& strategy : {away, split, layers, buckets}) expect_sound(strategy);
}

TEST(OpenChoices, AreReplacedByPlainValues) {
  Strategy s = four_stages();
  s.pipeline.layer_split = "auto", s.recompute = {.kind = RecomputeKind::Rotor};
  s.offload.activations = OffloadedActivations::FreeTime, s.communication.bucket = {-1}, s.communication.parts = {0};
  EXPECT_TRUE(leaves_open(s));
  EXPECT_EQ(without_open_choices(s), four_stages());
  Strategy stated = four_stages();
  stated.recompute = {.kind = RecomputeKind::Full}, stated.pipeline.layer_split = "3,3,3,3", stated.communication.parts = {2};
  EXPECT_EQ(without_open_choices(stated), stated);
}

}  // namespace foreshard::open_choices_test
