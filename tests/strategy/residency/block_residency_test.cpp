// Closed forms of the block policies. W: a block's parameters, dW: its gradient, both of q elements in 16 bits.
#include "strategy/residency/block_residency.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "tests/strategy/residency/support_llama.h"

namespace foreshard::block_residency_test {

namespace {

constexpr BlockRule kFsdp2 = {.ahead_forward = 1,
                              .ahead_backward = 1,
                              .staging_in_forward = true,
                              .gradient = FullGradient::OfUse,
                              .reduction_in_flight = true};
constexpr BlockRule kBmtrain3 = {.ahead_forward = 1, .ahead_backward = 1, .gradient = FullGradient::WithGather};
constexpr BlockRule kBmtrain2 = {
    .ahead_forward = 1, .ahead_backward = 1, .keep_after_forward = true, .gradient = FullGradient::WithGather};

Residency checked(const std::vector<ParameterUnit>& units, const std::vector<UnitUse>& uses, const BlockRule& rule) {
  const Residency residency = block_residency(units, uses, rule);
  EXPECT_EQ(residency_fault(units, uses, residency), "");
  return residency;
}

// In blocks of 16-bit parameters: the largest of the forward, of the backward.
struct Peaks {
  std::int64_t forward = 0, backward = 0, parameters = 0, gathered = 0;
  bool operator==(const Peaks&) const = default;
};
Peaks peaks_of(int blocks, const BlockRule& rule, const std::vector<UnitRange>& recomputed = {}) {
  const std::vector<ParameterUnit> units = equal_blocks(blocks, 1);
  const std::vector<UnitUse> uses = step_order(blocks, recomputed);
  const Residency residency = checked(units, uses, rule);
  const std::vector<Bytes> bytes = resident_bytes(units, uses, residency);
  const auto turn = bytes.begin() + blocks;
  return {std::max_element(bytes.begin(), turn)->value / 2, std::max_element(turn, bytes.end())->value / 2,
          peak_elements(units, uses, residency), brought_elements(units, residency)};
}

std::vector<UnitRange> each_alone(int blocks) {
  std::vector<UnitRange> ranges;
  for (int i = 0; i < blocks; ++i) ranges.push_back({i, i});
  return ranges;
}

double gib_of_blocks(std::int64_t blocks) { return in_gib(Bytes{2 * blocks * kLlamaBlock}); }

}  // namespace

// Forward: the block, its staging copy and the gathered next one. Backward: block, gathered next, gradient, and an fp32 input of the last
// reduction, which is two blocks.
TEST(BlockResidency, Fsdp2HasThreeBlocksForwardAndFiveBackward) {
  for (const int blocks : {3, 8, 32}) EXPECT_EQ(peaks_of(blocks, kFsdp2), (Peaks{3, 5, 2, 2 * blocks})) << blocks;
  EXPECT_EQ(peaks_of(32, kFsdp2, each_alone(32)), (Peaks{3, 5, 2, 64}));
  EXPECT_NEAR(gib_of_blocks(3), 1.13, 0.005);
  EXPECT_NEAR(gib_of_blocks(5), 1.88, 0.005);
}

// a b c: staging copies while the forward of their block runs; an input of a reduction beside the next block's backward.
TEST(BlockResidency, Fsdp2BuffersStandBesideTheirUses) {
  using enum UnitBuffer::Kind;
  EXPECT_EQ(checked(equal_blocks(3, 1), step_order(3), kFsdp2).buffers, (std::vector<UnitBuffer>{{0, Staging, 0, 0},
                                                                                                 {1, Staging, 1, 1},
                                                                                                 {2, Staging, 2, 2},
                                                                                                 {2, Gradient, 3, 3},
                                                                                                 {2, ReductionInput, 4, 4},
                                                                                                 {1, Gradient, 4, 4},
                                                                                                 {1, ReductionInput, 5, 5},
                                                                                                 {0, Gradient, 5, 5}}));
}

// 2 W forward; 2 (W + dW) backward: the next block is gathered, and its gradient zeroed, before the last one goes.
TEST(BlockResidency, BmtrainLevel3HasTwoBlocks) {
  for (const int blocks : {2, 8, 32}) EXPECT_EQ(peaks_of(blocks, kBmtrain3), (Peaks{2, 4, 2, 2 * blocks})) << blocks;
  EXPECT_EQ(peaks_of(32, kBmtrain3, each_alone(32)), (Peaks{2, 4, 2, 64}));
  EXPECT_NEAR(gib_of_blocks(2), 0.75, 0.005);
  EXPECT_NEAR(gib_of_blocks(4), 1.51, 0.005);
}

// The closed form for n ranks: 2 Psi / n of shards and as many of their gradients, and 2 (2 q + 2 q) bytes.
TEST(BlockResidency, BmtrainLevel3FollowsItsClosedForm) {
  const std::int64_t q = 1000, ranks = 4, blocks = 8, total = q * blocks;
  const std::vector<ParameterUnit> units = equal_blocks(static_cast<int>(blocks), q);
  const std::vector<UnitUse> uses = step_order(static_cast<int>(blocks));
  const std::int64_t shards = 2 * (2 * total / ranks);
  EXPECT_EQ(shards + peak_bytes(units, uses, checked(units, uses, kBmtrain3)).value, 4 * total / ranks + 2 * (2 * q + 2 * q));
}

// All blocks of parameters at the turn, one gather each, and two gradients.
TEST(BlockResidency, BmtrainLevel2KeepsAllBlocks) {
  for (const int blocks : {2, 8, 32})
    EXPECT_EQ(peaks_of(blocks, kBmtrain2), (Peaks{blocks, blocks + 2, blocks, blocks})) << blocks;
  EXPECT_NEAR(gib_of_blocks(32), 12.06, 0.005);
}

TEST(BlockResidency, TheEndsGatherOnceOrTwice) {
  EXPECT_EQ(peaks_of(8, {.keep_after_forward = true}), (Peaks{8, 8, 8, 8}));
  EXPECT_EQ(peaks_of(8, {}), (Peaks{1, 1, 1, 16}));
}

// L2L: one or two layers, every weight up once in the forward and once in the backward.
TEST(BlockResidency, L2lHasOneOrTwoLayers) {
  EXPECT_EQ(peaks_of(12, {}, each_alone(12)), (Peaks{1, 1, 1, 24}));
  EXPECT_EQ(peaks_of(12, {.ahead_forward = 1, .ahead_backward = 1}, each_alone(12)), (Peaks{2, 2, 2, 24}));
}

// The picture by hand: a b c, one ahead in the forward, none in the backward.
TEST(BlockResidency, GathersStandWhereTheRuleSays) {
  const std::vector<ParameterUnit> units = equal_blocks(3, 1);
  EXPECT_EQ(checked(units, step_order(3), {.ahead_forward = 1}).stays,
            (std::vector<Stay>{{0, 0, 0, 0}, {1, 0, 1, 1}, {2, 1, 2, 2}, {2, 3, 3, 3}, {1, 4, 4, 4}, {0, 5, 5, 5}}));
  EXPECT_EQ(checked(units, step_order(3), {.ahead_backward = 2}).stays,
            (std::vector<Stay>{{0, 0, 0, 0}, {1, 1, 1, 1}, {2, 2, 2, 2}, {2, 3, 3, 3}, {1, 3, 4, 4}, {0, 3, 5, 5}}));
}

// Recomputation and backward of a block are one visit.
TEST(BlockResidency, ARecomputedBlockStaysForItsBackward) {
  const std::vector<UnitUse> uses = step_order(2, each_alone(2));  // a b, b again, b, a again, a
  EXPECT_EQ(checked(equal_blocks(2, 1), uses, {}).stays,
            (std::vector<Stay>{{0, 0, 0, 0}, {1, 1, 1, 1}, {1, 2, 2, 3}, {0, 4, 4, 5}}));
}

// Two micro-batches of two blocks: what is kept goes with its backward and comes again.
TEST(BlockResidency, AKeptUnitGoesWithItsMicrobatch) {
  std::vector<UnitUse> uses = step_order(2);
  for (const UnitUse& use : step_order(2)) uses.push_back(use);
  EXPECT_EQ(checked(equal_blocks(2, 1), uses, {.keep_after_forward = true}).stays,
            (std::vector<Stay>{{0, 0, 0, 3}, {1, 1, 1, 2}, {0, 4, 4, 7}, {1, 5, 5, 6}}));
}

// A unit that is used twice in the forward, a tied embedding, is not gathered while it is still there.
TEST(BlockResidency, AUnitThatIsUsedTwiceComesTwice) {
  const std::vector<UnitUse> uses = {{0, Phase::Forward},  {1, Phase::Forward},  {0, Phase::Forward},
                                     {0, Phase::Backward}, {1, Phase::Backward}, {0, Phase::Backward}};
  EXPECT_EQ(checked(equal_blocks(2, 1), uses, {.ahead_forward = 3}).stays,
            (std::vector<Stay>{{0, 0, 0, 0}, {1, 0, 1, 1}, {0, 1, 2, 2}, {0, 3, 3, 3}, {1, 4, 4, 4}, {0, 5, 5, 5}}));
  checked(equal_blocks(2, 1), uses, {.keep_after_forward = true});
}

}  // namespace foreshard::block_residency_test
