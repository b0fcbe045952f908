#include "core/op/expert_copies.h"

#include <gtest/gtest.h>

namespace foreshard::expert_copies_test {
namespace {

// n (1 - C(E - E/n, k) / C(E, k)) of E 256, k 8: published with the model's report.
TEST(ExpertCopies, RanksAndNodesOfAToken) {
  const auto parts = [](int n) { return parts_of_token({.experts = 256, .chosen = 8, .ranks = 64, .parts = n}); };
  EXPECT_NEAR(parts(8), 5.295, 5e-4);
  EXPECT_NEAR(parts(16), 6.523, 5e-4);
  EXPECT_NEAR(parts(32), 7.267, 5e-4);
  EXPECT_NEAR(parts(64), 7.676, 5e-4);
  EXPECT_NEAR(parts(2), 1.993, 5e-4);
  EXPECT_EQ(parts(1), 1);
  // Mixtral on 4 ranks: 1.393 of 1.5 copies leave: 3/4 of what a token has.
  EXPECT_NEAR(parts_of_token({.experts = 8, .chosen = 2, .ranks = 4, .parts = 4}) * 3 / 4, 1.393, 5e-4);
}

// By counting: 4 experts on 2 parts, 2 chosen. Of the 6 pairs {0 1} and {2 3} are on one part: (2 x 1 + 4 x 2) / 6.
TEST(ExpertCopies, CountedByHand) {
  EXPECT_NEAR(parts_of_token({.experts = 4, .chosen = 2, .ranks = 2, .parts = 2}), 10.0 / 6, 1e-12);
}

// DeepSeek-V3: 4 of 8 groups, one on each of 8 nodes, by the sum of their two best scores: 3.954 nodes and 7.496 ranks (simulated
// elsewhere), more than the 3.63 nodes of random groups.
TEST(ExpertCopies, GroupsLimitTheNodesOfAToken) {
  ExpertSpread spread = {
      .experts = 256, .chosen = 8, .groups = 8, .chosen_groups = 4, .best_of_group = 2, .ranks = 64, .parts = 8};
  EXPECT_NEAR(parts_of_token(spread), 3.954, 0.01 * 3.954);
  EXPECT_LE(parts_of_token(spread), 4);
  spread.parts = 64;
  EXPECT_NEAR(parts_of_token(spread), 7.496, 0.01 * 7.496);
  // Experts that are dealt out leave each group on all nodes.
  spread.parts = 8, spread.dealt = true;
  EXPECT_GT(parts_of_token(spread), 5);
}

TEST(ExpertCopies, ExpertsLieOnPartsOfTheGroup) {
  const ExpertSpread rows = {.experts = 16, .ranks = 8, .parts = 2};
  EXPECT_EQ(part_of(rows, 7), 0);
  EXPECT_EQ(part_of(rows, 8), 1);
  const ExpertSpread dealt = {.experts = 16, .ranks = 8, .parts = 2, .dealt = true};
  EXPECT_EQ(part_of(dealt, 8), 0);   // rank 0
  EXPECT_EQ(part_of(dealt, 13), 1);  // rank 5
}

}  // namespace
}  // namespace foreshard::expert_copies_test
