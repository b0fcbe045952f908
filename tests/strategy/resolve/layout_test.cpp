#include "strategy/resolve/layout.h"

#include <gtest/gtest.h>

#include <numeric>

namespace foreshard::layout_test {
namespace {

using enum DenseKind;
using enum ExpertKind;

std::vector<Axis> refined(const std::vector<DenseDegree>& dense, const ExpertDegrees& expert) {
  auto answer = refined_axes(dense, expert);
  if (auto* refused = std::get_if<Infeasible>(&answer)) ADD_FAILURE() << refused->reason;
  return std::get<std::vector<Axis>>(std::move(answer));
}
Infeasible refusal(const std::vector<DenseDegree>& dense, const ExpertDegrees& expert) {
  const auto answer = refined_axes(dense, expert);
  return std::holds_alternative<Infeasible>(answer) ? std::get<Infeasible>(answer) : Infeasible{.reason = "none"};
}

// Ranks of a group: those that differ from `rank` at most in the axes that `in` says are of it. axes: fastest first.
template <class In>
std::vector<int> group_of(const std::vector<Axis>& axes, int rank, int ranks, In in) {
  std::vector<int> members;
  for (int other = 0; other < ranks; ++other) {
    bool same = true;
    int stride = 1;
    for (const Axis& axis : axes) {
      if (!in(axis)) same = same && rank / stride % axis.size == other / stride % axis.size;
      stride *= axis.size;
    }
    if (same) members.push_back(other);
  }
  return members;
}
// The direct formula: coordinates of the degrees themselves, whatever the axes are.
std::vector<int> direct(int rank, int ranks, int below, int degree) {
  std::vector<int> members;
  const int width = below * degree;
  for (int other = 0; other < ranks; ++other)
    if (other / width == rank / width && other % below == rank % below) members.push_back(other);
  return members;
}

}  // namespace

TEST(RefinedAxes, FoldBothGrids) {
  const std::vector<Axis> axes = refined({{DenseKind::Tensor, 2}, {Context, 2}, {Data, 4}}, {.experts = 8});
  EXPECT_EQ(axes, (std::vector<Axis>{{.name = "tp", .dense = DenseKind::Tensor, .expert = Expert, .size = 2},
                                     {.name = "cp", .dense = Context, .expert = Expert, .size = 2},
                                     {.name = "dp", .dense = Data, .expert = Expert, .size = 2},
                                     {.name = "dp.2", .dense = Data, .expert = ExpertData, .size = 2}}));
}

TEST(RefinedAxes, ADenseGridStaysAsItIs) {
  EXPECT_EQ(refined({{DenseKind::Tensor, 2}, {Context, 1}, {Data, 4}, {OuterData, 3}}, {}),
            (std::vector<Axis>{{.name = "tp", .dense = DenseKind::Tensor, .size = 2},
                               {.name = "dp", .dense = Data, .size = 4},
                               {.name = "dp_outer", .dense = OuterData, .size = 3}}));
  EXPECT_TRUE(refined({{DenseKind::Tensor, 1}, {Data, 1}}, {}).empty());
}

// Expert-tensor 2 lies inside tensor 4, experts 4 reach from there into data.
TEST(RefinedAxes, ADegreeMayHaveThreeFactors) {
  EXPECT_EQ(refined({{DenseKind::Tensor, 16}, {Data, 2}}, {.tensor = 2, .experts = 4}),
            (std::vector<Axis>{{.name = "tp", .dense = DenseKind::Tensor, .expert = ExpertTensor, .size = 2},
                               {.name = "tp.2", .dense = DenseKind::Tensor, .expert = Expert, .size = 4},
                               {.name = "tp.3", .dense = DenseKind::Tensor, .expert = ExpertData, .size = 2},
                               {.name = "dp", .dense = Data, .expert = ExpertData, .size = 2}}));
}

TEST(RefinedAxes, WhatDoesNotNestIsRefusedWithWhatWould) {
  // groups of 2 lie across those of 3; 1, 3, 6 and 12 of the 12 ranks nest with 3 and 12
  const Infeasible across = refusal({{DenseKind::Tensor, 3}, {Context, 1}, {Data, 4}}, {.experts = 2});
  EXPECT_EQ(across.reason, "expert degree 2 makes groups of 2 ranks, which lie across those of the dense grid (1, 3, 12)");
  EXPECT_EQ(across.would_help, (std::vector<std::string>{"expert degree 1, 3, 6, 12"}));
  EXPECT_EQ(refusal({{DenseKind::Tensor, 3}, {Data, 4}}, {.tensor = 3, .experts = 3}).would_help,
            (std::vector<std::string>{"expert degree 1, 2, 4"}));
  EXPECT_EQ(refusal({{DenseKind::Tensor, 4}, {Data, 2}}, {.tensor = 3}).would_help,
            (std::vector<std::string>{"expert-tensor degree 1, 2, 4, 8"}));
  EXPECT_EQ(refusal({{DenseKind::Tensor, 2}}, {.experts = 4}).would_help, (std::vector<std::string>{"expert degree 1, 2"}));
}

// Every group of either grid is a set of axes: for all small sizes the groups by axes are those of the degrees themselves, and the
// sizes that are refused are those for which a product of one grid neither divides nor is divided by one of the other.
TEST(RefinedAxes, GroupsOfBothGridsAreSetsOfAxes) {
  int taken = 0, refused = 0;
  for (int t = 1; t <= 4; ++t)
    for (int c = 1; c <= 3; ++c)
      for (int d = 1; d <= 4; ++d)
        for (int et = 1; et <= 4; ++et)
          for (int e = 1; e <= 8; ++e) {
            const int ranks = t * c * d;
            bool nests = ranks % (et * e) == 0;
            for (const int mine : {et, et * e})
              for (const int other : {t, t * c}) nests = nests && (mine % other == 0 || other % mine == 0);
            const auto answer = refined_axes({{DenseKind::Tensor, t}, {Context, c}, {Data, d}}, {.tensor = et, .experts = e});
            ASSERT_EQ(std::holds_alternative<std::vector<Axis>>(answer), nests) << t << c << d << " " << et << e;
            if (!nests) {
              ++refused;
              continue;
            }
            ++taken;
            const auto& axes = std::get<std::vector<Axis>>(answer);
            const int product = std::accumulate(axes.begin(), axes.end(), 1, [](int n, const Axis& a) { return n * a.size; });
            ASSERT_EQ(product, ranks);
            EXPECT_LE(axes.size(), 5u);
            const auto dense = [](DenseKind kind) { return [kind](const Axis& axis) { return axis.dense == kind; }; };
            const auto expert = [](ExpertKind kind) { return [kind](const Axis& axis) { return axis.expert == kind; }; };
            for (int rank = 0; rank < ranks; ++rank) {
              EXPECT_EQ(group_of(axes, rank, ranks, dense(DenseKind::Tensor)), direct(rank, ranks, 1, t));
              EXPECT_EQ(group_of(axes, rank, ranks, dense(Context)), direct(rank, ranks, t, c));
              EXPECT_EQ(group_of(axes, rank, ranks, dense(Data)), direct(rank, ranks, t * c, d));
              EXPECT_EQ(group_of(axes, rank, ranks, expert(ExpertTensor)), direct(rank, ranks, 1, et));
              EXPECT_EQ(group_of(axes, rank, ranks, expert(Expert)), direct(rank, ranks, et, e));
              EXPECT_EQ(group_of(axes, rank, ranks, expert(ExpertData)), direct(rank, ranks, et * e, ranks / (et * e)));
            }
          }
  EXPECT_GT(taken, 300);
  EXPECT_GT(refused, 300);
}

TEST(RankLayout, ListsSlowestFirstAndPlacesInTheOrderOfTheStrategy) {
  Strategy s{.dp = 8, .tp = 2, .pp = 2, .zero = {.stage = 1, .group = 4}};
  s.cp = 2;
  s.placement = {std::nullopt, Data, OuterData, DenseKind::Tensor, Context};
  const auto layout = std::get<Layout>(rank_layout(s));
  EXPECT_EQ(layout.axes, (std::vector<Axis>{{.name = "dp_outer", .dense = OuterData, .size = 2},
                                            {.name = "dp", .dense = Data, .size = 4},
                                            {.name = "cp", .dense = Context, .size = 2},
                                            {.name = "tp", .dense = DenseKind::Tensor, .size = 2}}));
  EXPECT_EQ(layout.fastest_first, (std::vector<AxisId>{{}, {1}, {0}, {3}, {2}}));
}

}  // namespace foreshard::layout_test
