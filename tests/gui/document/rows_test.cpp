#include "gui/document/rows.h"

#include <gtest/gtest.h>

#include "core/cluster_file/cluster_file.h"
#include "sim/simulate.h"
#include "strategy/lower/lower.h"
#include "tests/gui/documents.h"

namespace foreshard::rows_test {
namespace {

TEST(Rows, StagesOfAFoldedResult) {
  const auto document = pipeline_document();
  const std::vector<RankGroup> groups = group_ranks(*document, Grouping::Stage);
  ASSERT_EQ(groups.size(), 4u);
  for (std::size_t g = 0; g < 4; ++g) {
    EXPECT_EQ(groups[g].ranks.size(), 2u);
    EXPECT_EQ(groups[g].members, (std::vector<RowMember>{{{static_cast<std::int32_t>(g)}, 2}}));
  }
}

TEST(Rows, EveryGroupingHoldsEveryRankOnce) {
  const auto document = pipeline_document(played::Fold::None);
  for (int g = 0; g < kGroupings; ++g) {
    std::set<RankId> ranks;
    for (const RankGroup& group : group_ranks(*document, static_cast<Grouping>(g)))
      for (const RankId rank : group.ranks) EXPECT_TRUE(ranks.insert(rank).second);
    EXPECT_EQ(ranks.size(), 8u) << g;
  }
  EXPECT_EQ(group_ranks(*document, Grouping::DataParallel).size(), 2u);
  EXPECT_EQ(group_ranks(*document, Grouping::TensorParallel).size(), 8u);  // no axis tp: each rank is its own group
}

// Four replicas in ZeRO groups of two, tensor groups of two: an axis of each kind, whatever they are called.
TEST(Rows, ReplicasAreCountedOverZeroGroups) {
  const Cluster cluster = load_cluster("dgx-a100");
  const Strategy strategy{.dp = 4, .tp = 2, .batch = {.global = 4, .seq = 64}, .zero = {.stage = 1, .group = 2}};
  Plan plan = std::get<Lowered>(lower(load_model("gpt2-124m"), cluster, strategy)).plan;
  ASSERT_EQ(plan.axes.size(), 3u);
  for (Axis& axis : plan.axes) axis.name = "axis";
  const auto document =
      make_document(simulate(plan, cluster, {.granularity = Granularity::Stage, .folding = Folding::None}), "");
  const auto replicas = group_ranks(*document, Grouping::DataParallel),
             tensor = group_ranks(*document, Grouping::TensorParallel);
  EXPECT_EQ(replicas.size(), 4u);
  EXPECT_EQ(tensor.size(), 4u);
  for (const RankGroup& group : replicas) EXPECT_EQ(group.ranks.size(), 2u);
  for (const RankGroup& group : tensor) EXPECT_EQ(group.ranks.size(), 2u);
}

TEST(Rows, ClassesThatDoTheSameAreOneMember) {
  const auto document = pipeline_document(played::Fold::None);  // eight classes, the two replicas of a stage alike
  for (const RankGroup& group : group_ranks(*document, Grouping::Stage)) {
    ASSERT_EQ(group.members.size(), 1u);
    EXPECT_EQ(group.members.front().ranks, 2);
    EXPECT_EQ(group.classes.size(), 2u);
    EXPECT_NE(group.classes[0], group.classes[1]);
  }
}

TEST(Rows, TheWorstMemberIdlesMost) {
  // Rank 1 is the second replica of stage 0; twice as slow, it is busiest, so the other replica idles most.
  const auto document = pipeline_document(played::Fold::None, {.rank = 1, .factor = 2});
  const RankGroup stage = group_ranks(*document, Grouping::Stage).front();
  ASSERT_EQ(stage.members.size(), 2u);
  EXPECT_EQ(document->trace().classes[stage.worst.index()].members.front(), stage.ranks.front());
}

TEST(Rows, AnOpenGroupHasARowPerRankAndPinnedRowsComeFirst) {
  const auto document = pipeline_document();
  const auto groups = group_ranks(*document, Grouping::Stage);
  const RowState state{.open = {1}, .pinned = {RowKey{3, {}}}};
  const std::vector<Row> rows = lay_rows(groups, state, 400, false);
  ASSERT_EQ(rows.size(), 6u);
  EXPECT_EQ(rows[0].key, (RowKey{3, {}}));
  EXPECT_TRUE(rows[0].pinned);
  EXPECT_EQ(rows[2].key, (RowKey{1, {}}));
  EXPECT_TRUE(rows[2].open);
  EXPECT_EQ(rows[3].key, (RowKey{1, groups[1].ranks[0]}));
  EXPECT_EQ(rows[4].shown(), rows[3].shown());  // identical ranks show their class
}

TEST(Rows, RowsLieBelowEachOtherAndAreFoundByHeight) {
  const auto document = pipeline_document();
  const std::vector<Row> rows = lay_rows(group_ranks(*document, Grouping::Stage), {.row_height = 13}, 1000, false);
  for (std::size_t r = 0; r < rows.size(); ++r) {
    EXPECT_EQ(rows[r].top, static_cast<int>(r) * 13);
    EXPECT_EQ(row_at(rows, rows[r].top), static_cast<int>(r));
    EXPECT_EQ(row_at(rows, rows[r].top + 12), static_cast<int>(r));
  }
  EXPECT_EQ(row_at(rows, -1), -1);
  EXPECT_EQ(row_at(rows, 4 * 13), -1);
  EXPECT_EQ(row_at({}, 0), -1);
}

TEST(Rows, HeightsByTheRoomThereIs) {
  const auto groups = group_ranks(*pipeline_document(), Grouping::Stage);
  EXPECT_EQ(lay_rows(groups, {}, 4 * 30, false).front().height, 30);
  EXPECT_EQ(lay_rows(groups, {}, 4 * 300, false).front().height, kRowMost);
  EXPECT_EQ(lay_rows(groups, {}, 4, false).front().height, kRowLeast);
  EXPECT_EQ(lay_rows(groups, {}, 4 * 30, true).front().height, 30);
  EXPECT_EQ(lay_rows(groups, {.row_height = 30}, 1, true).front().height, 45);
}

}  // namespace
}  // namespace foreshard::rows_test
