#include "core/plan/axis.h"

#include <gtest/gtest.h>

namespace foreshard::axis_test {

using enum DenseKind;

TEST(Axis, DataAxesOfAGridAreThoseThatSeeOtherTokens) {
  const Axis folded{.dense = Tensor, .expert = ExpertKind::ExpertData, .size = 2};
  EXPECT_FALSE(is_data(folded, Grid::Dense));
  EXPECT_TRUE(is_data(folded, Grid::Expert));
  for (const DenseKind kind : {Context, Data, OuterData}) {
    EXPECT_TRUE(is_data({.dense = kind}, Grid::Dense));
    EXPECT_FALSE(is_data({.dense = kind, .expert = ExpertKind::Expert}, Grid::Expert));
    EXPECT_FALSE(is_data({.dense = kind, .expert = ExpertKind::ExpertTensor}, Grid::Expert));
  }
}

TEST(RankOrder, OuterDataFollowsDataWhereItIsLeftOut) {
  EXPECT_EQ(to_text(default_rank_order()), "tp,cp,dp,dp_outer,role");
  EXPECT_EQ(to_text(with_outer_data({Data, std::nullopt, Tensor, Context})), "dp,dp_outer,role,tp,cp");
  EXPECT_EQ(to_text(with_outer_data({OuterData, Data})), "dp_outer,dp");
  EXPECT_TRUE(is_complete({Data, std::nullopt, Tensor, Context}));
  EXPECT_TRUE(is_complete({OuterData, Data, std::nullopt, Tensor, Context}));
  EXPECT_FALSE(is_complete({Data, Tensor, Context}));
  EXPECT_FALSE(is_complete({Data, Data, std::nullopt, Tensor, Context}));
}

// Axes are listed slowest first, an order is fastest first.
TEST(RankOrder, AxesOfOneKindStayTogether) {
  const std::vector<Axis> axes = {
      {.name = "dp.2", .dense = Data}, {.name = "dp", .dense = Data}, {.name = "tp", .dense = Tensor}};
  EXPECT_EQ(in_order(axes, default_rank_order()), (std::vector<AxisId>{{2}, {1}, {0}, {}}));
  EXPECT_EQ(in_order(axes, {std::nullopt, Data, OuterData, Tensor, Context}), (std::vector<AxisId>{{}, {1}, {0}, {2}}));
  EXPECT_EQ(axis_name(OuterData), "dp_outer");
  EXPECT_EQ(axis_name(Data, 2), "dp.2");
}

}  // namespace foreshard::axis_test
