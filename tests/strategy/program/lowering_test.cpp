// Groups of a plan that is being built: over axes of the asked kinds, one for each stream, and over roles that hold the same stage.
#include "strategy/program/lowering.h"

#include <gtest/gtest.h>

namespace foreshard::lowering_test {
namespace {

constexpr AxisId kData{0}, kContext{1}, kTensor{2};
constexpr StreamId kFirst{1}, kSecond{2};

// data 4 x context 1 x tensor 2, all of the role that is being built.
class LoweringTest : public testing::Test {
 protected:
  Model model;
  Cluster cluster;
  Lowering lowering{.model = model, .cluster = cluster, .strategy = {}};

  LoweringTest() {
    lowering.plan.axes = {{"dp", DenseKind::Data, ExpertKind::Expert, 4},
                          {"cp", DenseKind::Context, ExpertKind::ExpertData, 1},
                          {"tp", DenseKind::Tensor, ExpertKind::ExpertTensor, 2}};
    lowering.axes = {kData, kContext, kTensor};
  }
};

}  // namespace

TEST_F(LoweringTest, AxesOfKinds) {
  EXPECT_EQ(lowering.over({DenseKind::Tensor, DenseKind::Data}), (std::vector<AxisId>{kData, kTensor}));
  EXPECT_EQ(lowering.over({ExpertKind::Expert}), (std::vector<AxisId>{kData}));
  EXPECT_EQ(lowering.over({DenseKind::OuterData}), (std::vector<AxisId>{}));
  EXPECT_EQ(lowering.ranks({DenseKind::Tensor, DenseKind::Data}), 8);
  EXPECT_EQ(lowering.ranks({DenseKind::Context}), 1);
}

// The second question for a group finds the first one; another stream has its own; of one rank there is none.
TEST_F(LoweringTest, AGroupIsMadeOnce) {
  const GroupId data = lowering.group({DenseKind::Data}, kFirst, "gradients");
  EXPECT_EQ(lowering.group({DenseKind::Data}, kFirst), data);
  const GroupId other = lowering.group({DenseKind::Data}, kSecond);
  EXPECT_NE(other, data);
  EXPECT_FALSE(lowering.group({DenseKind::Context}, kFirst).valid());
  ASSERT_EQ(lowering.plan.groups.size(), 2U);
  EXPECT_EQ(lowering.plan.groups[data.index()], (Group{.name = "gradients", .over = {kData}}));
}

TEST_F(LoweringTest, GroupsThatWouldBeEmptyAreLeftOut) {
  lowering.add_group({.name = "none", .over = {DenseKind::OuterData}});
  EXPECT_TRUE(lowering.plan.groups.empty());
  lowering.add_group({.name = "ends", .roles = LayoutGroup::Roles::Tied}, {RoleId{0}, RoleId{3}});
  EXPECT_EQ(lowering.group_of_roles(LayoutGroup::Roles::Tied), GroupId{0});
  EXPECT_FALSE(lowering.group_of_roles(LayoutGroup::Roles::All).valid());
}

// Four ranks with two routes: rank 1 holds what rank 2 holds. Sums over all replicas are over both, shards and sums over tensor ranks are not.
TEST_F(LoweringTest, TwoRoutesJoinMirroredRanks) {
  const Kinds replicas = {DenseKind::OuterData, DenseKind::Data};
  lowering.tables.schedule.routes = 2;
  lowering.tables.schedule.stages_of_rank = {{0, 7}, {1, 6}, {2, 5}, {3, 4}};
  lowering.tables.layout.groups = {{.name = "gradients", .over = replicas, .stream = kFirst}};
  lowering.begin_role(2);
  EXPECT_EQ(lowering.replica_roles, (std::vector<RoleId>{{1}, {2}}));
  EXPECT_EQ(lowering.ranks(replicas), 8);
  EXPECT_EQ(lowering.ranks({DenseKind::OuterData}), 2);
  EXPECT_EQ(lowering.ranks({DenseKind::Data}), 4);
  EXPECT_EQ(lowering.ranks({DenseKind::Tensor}), 2);
  ASSERT_EQ(lowering.plan.groups.size(), 1U);
  EXPECT_EQ(lowering.plan.groups[0].roles, (std::vector<RoleId>{{1}, {2}}));
  // The mirrored rank uses the same group, the outer pair another.
  lowering.begin_role(1);
  EXPECT_EQ(lowering.group(replicas, kFirst), GroupId{0});
  lowering.begin_role(3);
  EXPECT_EQ(lowering.group(replicas, kFirst), GroupId{1});
  // Shards are of each rank by itself.
  EXPECT_TRUE(lowering.plan.groups[lowering.group({DenseKind::Data}, kFirst).index()].roles.empty());
}

TEST_F(LoweringTest, VersionsOfWeightsAreThoseOfTheRank) {
  lowering.tables.schedule.stages_of_rank = {{0}, {1}};
  lowering.begin_role(1);
  EXPECT_EQ(lowering.weight_slots, 1);
  lowering.tables.schedule.weight_slots = {3, 2};
  lowering.begin_role(1);
  EXPECT_EQ(lowering.weight_slots, 2);
}

// Stage 5 of eight in two routes is stage 1 of the model: layers 3 to 4.
TEST_F(LoweringTest, StagesOfBothRoutesHoldTheLayersOfTheModel) {
  lowering.tables.schedule.routes = 2;
  lowering.tables.schedule.rank_of_stage = {0, 1, 2, 3, 3, 2, 1, 0};
  lowering.tables.layout.layers.first = {0, 3, 5, 7, 10};
  EXPECT_EQ(lowering.first_layer(5), 3);
  EXPECT_EQ(lowering.layers_of(5), 2);
  EXPECT_EQ(lowering.layers_of(3), 3);
  EXPECT_EQ(lowering.stages(), 4);
}

}  // namespace foreshard::lowering_test
