// Where ranks stand: coordinates along the kinds of axes, micro-batches, places in groups.
#include "exec/rank/rank_place.h"

#include <gtest/gtest.h>

#include <set>
#include <tuple>

#include "core/base/error.h"

namespace foreshard::rank_place_test {
namespace {

// Two factors of the tensor degree (slowest first), one context axis, two data axes: 2 x 3 tensor, 2 context, 2 x 2 replicas.
Plan plan_of_48() {
  Plan plan;
  plan.axes = {{.name = "outer", .dense = DenseKind::OuterData, .size = 2},
               {.name = "data", .dense = DenseKind::Data, .size = 2},
               {.name = "cp", .dense = DenseKind::Context, .size = 2},
               {.name = "tp.2", .dense = DenseKind::Tensor, .size = 2},
               {.name = "tp", .dense = DenseKind::Tensor, .size = 3}};
  plan.roles = {{.axes = {AxisId{0}, AxisId{1}, AxisId{2}, AxisId{3}, AxisId{4}}}};
  plan.placement.order = {AxisId{4}, AxisId{3}, AxisId{2}, AxisId{1}, AxisId{0}, AxisId{}};
  plan.groups = {{.name = "tensor", .roles = {RoleId{0}}, .over = {AxisId{3}, AxisId{4}}}};
  plan.microbatches = 3, plan.samples = 4 * 3 * 5;
  return plan;
}

TEST(RankPlace, EveryRankStandsSomewhereElse) {
  const Plan plan = plan_of_48();
  const Ranks ranks(plan);
  ASSERT_EQ(ranks.count(), 48);
  std::set<std::tuple<int, int, int>> places;
  for (int r = 0; r < ranks.count(); ++r) {
    const RankPlace place = place_of(plan, ranks, {r});
    EXPECT_EQ(place.tp, 6);
    EXPECT_EQ(place.cp, 2);
    EXPECT_EQ(place.replicas, 4);
    EXPECT_EQ(place.micro_batch, 5);  // 60 samples, 4 replicas, 3 micro-batches
    EXPECT_EQ(place_in_group(ranks, {0}, {r}), place.tp_rank);
    places.insert({place.tp_rank, place.cp_rank, place.replica});
  }
  EXPECT_EQ(places.size(), 48U);
  EXPECT_EQ(*places.rbegin(), (std::tuple{5, 1, 3}));
}

TEST(RankPlace, ABatchThatDoesNotDivideIsRefused) {
  Plan plan = plan_of_48();
  plan.samples = 61;
  const Ranks ranks(plan);
  try {
    place_of(plan, ranks, {0});
    ADD_FAILURE() << "taken";
  } catch (const Error& error) {
    EXPECT_NE(std::string(error.what()).find("61"), std::string::npos) << error.what();
    EXPECT_NE(std::string(error.what()).find("4 replicas x 3 micro-batches"), std::string::npos) << error.what();
  }
}

}  // namespace
}  // namespace foreshard::rank_place_test
