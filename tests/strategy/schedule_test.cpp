// Generators: golden action lists, refusals, table, text, picture.
#include "strategy/schedule.h"

#include <gtest/gtest.h>

namespace foreshard {

static ScheduleLists lists_of(Schedule id, ScheduleShape shape) {
  const ScheduleEntry& entry = schedule_entry(id);
  EXPECT_FALSE(entry.refuse(shape).has_value());
  return entry.lists(shape);
}

TEST(Schedule, OneFOneBFourRanksEightMicrobatches) {  // docs/schedules.md, golden lists
  EXPECT_EQ(to_text(lists_of(Schedule::OneFOneB, {.p = 4, .m = 8})),
            "0F0 0F1 0F2 0F3 0B0 0F4 0B1 0F5 0B2 0F6 0B3 0F7 0B4 0B5 0B6 0B7\n"
            "1F0 1F1 1F2 1B0 1F3 1B1 1F4 1B2 1F5 1B3 1F6 1B4 1F7 1B5 1B6 1B7\n"
            "2F0 2F1 2B0 2F2 2B1 2F3 2B2 2F4 2B3 2F5 2B4 2F6 2B5 2F7 2B6 2B7\n"
            "3F0 3B0 3F1 3B1 3F2 3B2 3F3 3B3 3F4 3B4 3F5 3B5 3F6 3B6 3F7 3B7\n");
}

TEST(Schedule, InterleavedTwoRanksTwoChunksFourMicrobatches) {
  EXPECT_EQ(to_text(lists_of(Schedule::Interleaved, {.p = 2, .m = 4, .v = 2})),
            "0F0 0F1 2F0 2F1 0F2 2B0 0F3 2B1 2F2 0B0 2F3 0B1 2B2 2B3 0B2 0B3\n"
            "1F0 1F1 3F0 3B0 3F1 3B1 1F2 1B0 1F3 1B1 3F2 3B2 3F3 3B3 1B2 1B3\n");
}

TEST(Schedule, DrawsToScale) {  // F = 1, B = 2: two columns per unit, 15 units
  const auto lists = lists_of(Schedule::OneFOneB, {.p = 2, .m = 4});
  const auto timing = evaluate<double>(lists, equal_times<double>(2, 1, 1, 1));
  ASSERT_TRUE(timing.has_value());
  EXPECT_EQ(draw(lists, *timing, 40),
            "r0  0>1>....0<<<2>1<<<3>2<<<..3<<<\n"
            "r1  ..0>0<<<1>1<<<2>2<<<3>3<<<....\n"
            "> forward  < backward  . idle  number: micro-batch\n");
}

}  // namespace foreshard
