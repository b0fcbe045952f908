// Tables with a row per stage or rank: equal neighbours are one row, the middle of long tables is left out.
#include "report/tables/stage_tables.h"

#include <gtest/gtest.h>

namespace foreshard::stage_tables_test {
namespace {

// Stages with these forward times in milliseconds, one on each rank; the bubble of stage s is s per cent, all of it warm-up.
Summary stages(const std::vector<double>& forward) {
  Summary summary;
  for (std::size_t s = 0; s < forward.size(); ++s) {
    summary.stage_times.push_back({.forward = {forward[s] * 1e-3}, .backward_input = {2e-3}, .backward_weight = {1e-3}});
    const double bubble = 0.01 * static_cast<double>(s);
    summary.bubble.per_stage.push_back(bubble);
    summary.bubble.by_cause_per_stage.emplace_back(kBubbleCauses);
    summary.bubble.by_cause_per_stage.back()[static_cast<std::size_t>(BubbleCause::WarmUp)] = bubble;
  }
  return summary;
}

std::vector<std::string> names(const TextTable& table) {
  std::vector<std::string> all;
  for (const auto& row : table.rows) all.push_back(row.front());
  return all;
}

constexpr std::int64_t kGiB = std::int64_t{1} << 30;

Summary memory(const std::vector<std::int64_t>& gib) {
  Summary summary;
  summary.fit.capacity = {80 * kGiB}, summary.fit.reserve = {4 * kGiB};
  for (std::size_t r = 0; r < gib.size(); ++r)
    summary.memory.push_back(
        {.role = "rank " + std::to_string(r), .arena = {(gib[r] - 1) * kGiB}, .with_framework = {gib[r] * kGiB}});
  return summary;
}

}  // namespace

TEST(StageTable, EqualNeighboursAreOneRow) {
  const TextTable table = stage_table(stages({1, 2, 2, 2, 3}), 10);
  EXPECT_EQ(names(table), (std::vector<std::string>{"stage 0", "stage 1-3", "stage 4"}));
  EXPECT_EQ(table.rows[1][5], "1.0-3.0 %");
  EXPECT_EQ(table.rows[1][6], "warm-up 2.0");  // the mean of 1, 2 and 3 per cent
  EXPECT_EQ(table.rows[2][5], "4.0 %");
}

// Of nine rows, at most six are wanted: three first ones, a mark and the last one, which leaves room for a row that may not be left out.
TEST(StageTable, TheMiddleIsLeftOut) {
  const TextTable table = stage_table(stages({1, 2, 3, 4, 5, 6, 7, 8, 9}), 6);
  EXPECT_EQ(names(table), (std::vector<std::string>{"stage 0", "stage 1", "stage 2", "...", "stage 8"}));
  for (int most = 4; most <= 12; ++most)
    EXPECT_LE(stage_table(stages({1, 2, 3, 4, 5, 6, 7, 8, 9}), most).rows.size(), static_cast<std::size_t>(most));
}

// Two stages on a rank: the bubble is of the rank, in a table of its own.
TEST(RankTable, WhereRanksHoldSeveralStages) {
  Summary summary = stages({1, 2});
  EXPECT_TRUE(rank_table(summary, 10).rows.empty());
  EXPECT_EQ(stage_table(summary, 10).columns.size(), 7U);
  summary.stage_times.resize(4, summary.stage_times[0]);
  summary.memory = {{.role = "rank 0"}, {.role = "rank 1"}};
  EXPECT_EQ(stage_table(summary, 10).columns.size(), 5U);
  const TextTable table = rank_table(summary, 10);
  EXPECT_EQ(names(table), (std::vector<std::string>{"rank 0", "rank 1"}));
  EXPECT_EQ(table.rows[1][1], "1.0 %");
}

// 80 GiB less 4 of reserve and 70 in use: a margin of 6. Without a trace there are no peaks.
TEST(MemoryTable, MarginsAndMissingPeaks) {
  const TextTable table = memory_table(memory({70, 60}), 10);
  EXPECT_EQ(table.columns.back().header, "margin");
  EXPECT_EQ(table.columns.size(), 11U);  // no column for order bounds
  EXPECT_EQ(table.rows[0][1], "-");
  EXPECT_EQ(table.rows[0].back(), "6.00");
  EXPECT_EQ(table.rows[1].back(), "16.00");
}

// The fullest rank is shown wherever it is.
TEST(MemoryTable, TheFullestRankIsNotLeftOut) {
  const std::vector<std::string> shown = names(memory_table(memory({10, 11, 12, 13, 70, 15, 16, 17, 18}), 5));
  EXPECT_NE(std::find(shown.begin(), shown.end(), "rank 4"), shown.end());
  EXPECT_EQ(shown.front(), "rank 0");
  EXPECT_EQ(shown.back(), "rank 8");
  EXPECT_LT(shown.size(), 9U);
}

TEST(StageTables, WordsOfCauses) {
  EXPECT_EQ(words_of(BubbleCause::WarmUp), "warm-up");
  EXPECT_EQ(words_of(BubbleCause::ExposedCommunication), "exposed communication");
}

}  // namespace foreshard::stage_tables_test
