// What operators share: which phases are of the forward, sizes of operands, and the laws that hold for an operator that states none.
#include "core/op/op.h"

#include <gtest/gtest.h>

#include "core/op/attention.h"

namespace foreshard::ops {

// A backward in one kernel (Phase::Backward) makes the gradients of the inputs, too.
TEST(Op, PhasesAreForwardOrInputGradientOrNeither) {
  for (const Phase phase :
       {Phase::Forward, Phase::InputGrad, Phase::WeightGrad, Phase::Backward, Phase::Recompute, Phase::Update, Phase::Other}) {
    EXPECT_EQ(is_forward(phase), phase == Phase::Forward || phase == Phase::Recompute);
    EXPECT_EQ(is_input_grad(phase), phase == Phase::InputGrad || phase == Phase::Backward);
  }
}

TEST(Op, SizesCountDimensionsOfOneShape) {
  const Sizes sizes{.shapes = {{.dims = {2, 3}}, {.dims = {5, 7, 11}}}};
  EXPECT_EQ(sizes.count(0, 1), 3);
  EXPECT_EQ(sizes.count(1, 0), 5);
  EXPECT_EQ(sizes.dim(1, 2), 11.0);
}

// An operator that states no laws: a kernel that is not linear, with one input gradient, which no list of special cases contains.
TEST(Op, DefaultLawsSayNothing) {
  struct Plain : OperatorTraits {};
  const Plain plain;
  EXPECT_EQ(plain.gradients(), 1);
  EXPECT_FALSE(plain.partial_sums(Phase::Forward).pass);
  EXPECT_EQ(plain.partial_sums(Phase::Forward).summed_dim, -1);
  EXPECT_FALSE(plain.takes_loss_scale(Phase::Backward) || plain.writes_loss() || plain.adds_parts());
  EXPECT_FALSE(Plain::loss || Plain::steps || Plain::of_update || Plain::reads_sums || Plain::encodes || Plain::decodes);
  EXPECT_FALSE(Plain::matrix_product || Plain::depends_on_microbatch);
}

// Counted pair by pair, with the first key that the operator itself says.
TEST(Op, ShareOfAttentionInItsMask) {
  for (const auto& [window, chunk] : {std::pair(0, 0), {1, 0}, {5, 0}, {12, 0}, {40, 0}, {0, 1}, {0, 5}, {0, 12}, {0, 40}})
    for (const int blocks : {1, 3}) {
      const Attention attention{.causal = true, .blocks = blocks, .window = window, .chunk = chunk};
      const std::int64_t keys = 12, all = keys * blocks;
      double pairs = 0;
      for (std::int64_t query = 0; query < all; ++query) pairs += static_cast<double>(query + 1 - attention.first_key(query));
      EXPECT_DOUBLE_EQ(attention.share_in_mask(keys), pairs / static_cast<double>(all * all)) << window << " " << chunk;
    }
  EXPECT_EQ(Attention{}.share_in_mask(12), 1);
}

// One bit per operand: the sets of the first three are disjoint, and kAll has all of them.
TEST(Op, OperandSetsAreBits) {
  EXPECT_EQ(kFirst & kSecond, kNone);
  EXPECT_EQ((kFirst | kSecond) & kThird, kNone);
  EXPECT_EQ((kFirst | kSecond | kThird) & kAll, 7U);
}

}  // namespace foreshard::ops
