// 1F1B and interleaved 1F1B in cells against docs/schedules.md, in exact integers: golden lists, times, chunks in flight, and that fewer
// forwards ahead would not do.
#include <gtest/gtest.h>

#include <algorithm>

#include "tests/strategy/support_schedules.h"

namespace foreshard::schedule_cells_test {
namespace {

Schedule with_cells(const ScheduleShape& shape) { return shape.v > 1 ? Schedule::InterleavedCells : Schedule::OneFOneBCells; }
Schedule without(const ScheduleShape& shape) { return shape.v > 1 ? Schedule::Interleaved : Schedule::OneFOneB; }

std::int64_t makespan(const ScheduleLists& lists, const ScheduleShape& shape, std::int64_t f, std::int64_t b,
                      std::int64_t saved) {
  auto times = equal_times<std::int64_t>(shape.p * shape.v, f, b, 0);
  times.saved = saved;
  const auto timing = evaluate(lists, times);
  EXPECT_TRUE(timing.has_value());
  return timing ? timing->makespan : 0;
}

template <class Check>
void for_all_shapes(Check check) {
  for (const int p : {1, 2, 3, 4, 5, 8})
    for (const int v : {1, 2, 3})
      for (int m = 1; m <= 4 * p + 1; ++m)
        for (const int g : {0, p + 1}) {
          const ScheduleShape shape{.p = p, .m = m, .v = v, .g = v > 1 ? g : 0};
          const ScheduleEntry& entry = schedule_entry(with_cells(shape));
          if ((v == 1 && g > 0) || entry.refuse(shape)) continue;
          SCOPED_TRACE(entry.name + " p" + std::to_string(p) + " v" + std::to_string(v) + " m" + std::to_string(m) + " g" +
                       std::to_string(g));
          check(shape, entry.lists(shape));
        }
}

TEST(ScheduleCells, GoldenLists) {
  EXPECT_EQ(to_text(schedule_entry(Schedule::OneFOneBCells).lists({.p = 2, .m = 5})),
            "0F0 0F1 0F2 0F3&0B0 0F4&0B1 0B2 0B3 0B4\n"
            "1F0 1F1&1B0 1F2&1B1 1F3&1B2 1F4&1B3 1B4\n");
  EXPECT_EQ(to_text(schedule_entry(Schedule::InterleavedCells).lists({.p = 2, .m = 4, .v = 2})),
            "0F0 0F1 2F0 2F1 0F2 0F3&2B0 2F2&2B1 2F3&0B0 0B1 2B2 2B3 0B2 0B3\n"
            "1F0 1F1 3F0 3F1&3B0 1F2&3B1 1F3&1B0 3F2&1B1 3F3&3B2 3B3 1B2 1B3\n");
  EXPECT_EQ(to_text(schedule_entry(Schedule::OneFOneBCells).lists({.p = 1, .m = 3})), "0F0 0F1&0B0 0F2&0B1 0B2\n");
}

// (p-1)(F+B) while the pipeline fills and drains, w (F+B) of the last rank outside cells, and the rest in cells; all with the times of a chunk.
TEST(ScheduleCells, MakespanIsThatOfItsCells) {
  for_all_shapes([](const ScheduleShape& shape, const ScheduleLists& lists) {
    const std::int64_t total = std::int64_t{shape.m} * shape.v, group = shape.g == 0 ? shape.p : shape.g;
    const std::int64_t alone = std::min((shape.v - 1) * group + 1, total);
    for (const auto& [f, b] : {std::pair<std::int64_t, std::int64_t>{2, 4}, {3, 3}, {1, 5}})
      for (const std::int64_t saved : {std::int64_t{0}, std::int64_t{1}, std::min(f, b)})
        EXPECT_EQ(makespan(lists, shape, f, b, saved), (shape.p - 1 + alone) * (f + b) + (total - alone) * (f + b - saved))
            << f << " " << b << " " << saved;
    // As fast as without cells where these save nothing.
    EXPECT_EQ(makespan(lists, shape, 2, 4, 0), makespan(schedule_entry(without(shape)).lists(shape), shape, 2, 4, 0));
  });
}

// Of interleaved 1F1B one chunk more is in flight. With one chunk per rank, two micro-batches for each rank from there to the last.
TEST(ScheduleCells, OneChunkMoreIsInFlight) {
  for_all_shapes([](const ScheduleShape& shape, const ScheduleLists& lists) {
    const int total = shape.m * shape.v;
    const std::vector<int> peaks = peak_in_flight(lists), plain = peak_in_flight(schedule_entry(without(shape)).lists(shape));
    for (int r = 0; r < shape.p; ++r) {
      const int expected = shape.v > 1 ? plain[static_cast<std::size_t>(r)] + 1 : 2 * (shape.p - r);
      EXPECT_EQ(peaks[static_cast<std::size_t>(r)], std::min(expected, total)) << r;
    }
  });
}

TEST(ScheduleCells, ACellIsOfTwoMicrobatches) {
  int cells = 0;
  for_all_shapes([&](const ScheduleShape&, const ScheduleLists& lists) {
    for (const auto& list : lists)
      for (std::size_t i = 0; i < list.size(); ++i)
        if (list[i].with_next) {
          EXPECT_EQ(list[i].work, Work::F);
          EXPECT_EQ(list[i + 1].work, Work::B);
          EXPECT_NE(list[i].microbatch, list[i + 1].microbatch);
          ++cells;
        }
  });
  EXPECT_GT(cells, 1000);
}

// With p-r forwards ahead, one more than under 1F1B, each cell of a rank waits for a cell of the next one and then for one of the previous one.
TEST(ScheduleCells, FewerForwardsAheadWouldWait) {
  const ScheduleShape shape{.p = 4, .m = 24};
  ScheduleLists few(4);
  for (int r = 0; r < 4; ++r)
    for (int k = -(4 - r); k < shape.m; ++k) {
      const bool forward = k + 4 - r < shape.m;
      if (forward) few[static_cast<std::size_t>(r)].push_back({Work::F, r, k + 4 - r, k >= 0});
      if (k >= 0) few[static_cast<std::size_t>(r)].push_back({Work::B, r, k});
    }
  const ScheduleLists lists = schedule_entry(Schedule::OneFOneBCells).lists(shape);
  const auto per_microbatch = [&](const ScheduleLists& of) { return static_cast<double>(makespan(of, shape, 2, 4, 0)) / 24; };
  EXPECT_NEAR(per_microbatch(lists), 6, 1);
  EXPECT_GT(per_microbatch(few), 9);
}

}  // namespace
}  // namespace foreshard::schedule_cells_test
