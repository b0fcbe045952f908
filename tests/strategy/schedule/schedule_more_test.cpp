// V-Half, V-Min, Chimera, DualPipe and DualPipeV against docs/schedules.md, in exact integers: golden lists, times, chunks in flight.
#include <gtest/gtest.h>

#include <algorithm>
#include <array>

#include "strategy/schedule/schedule_read.h"
#include "tests/strategy/support_schedules.h"

namespace foreshard::schedule_more_test {

using Times = ScheduleTimes<std::int64_t>;

static ScheduleLists lists_of(Schedule id, ScheduleShape shape) {
  const ScheduleEntry& entry = schedule_entry(id);
  EXPECT_FALSE(entry.refuse(shape).has_value()) << entry.name;
  return entry.lists(shape);
}
static Times times_of(Schedule id, const ScheduleShape& shape, std::int64_t f, std::int64_t i, std::int64_t w,
                      std::int64_t saved = 0) {
  const int routes = schedule_entry(id).routes;
  Times times = equal_times<std::int64_t>(shape.p * shape.v * routes, f, i, w);
  times.routes = routes, times.saved = saved;
  return times;
}
static ScheduleTiming<std::int64_t> timed(Schedule id, const ScheduleShape& shape, const Times& times) {
  const auto timing = evaluate(lists_of(id, shape), times);
  EXPECT_TRUE(timing.has_value());
  return timing.value_or(ScheduleTiming<std::int64_t>{});
}

TEST(ScheduleMore, GoldenListsOfLessMemoryOnAV) {
  EXPECT_EQ(to_text(lists_of(Schedule::VHalf, {4, 4, 2})),
            "0F0 0F1 0F2 0F3 7F0 7I0 7F1 7I1 7W0 7F2 7I2 7W1 0I0 7W2 0W0 7F3 7I3 0I1 7W3 0I2 0W1 0W2 0I3 0W3\n"
            "1F0 1F1 1F2 1F3 6F0 6F1 6I0 6W0 6F2 6I1 6W1 1I0 6I2 6W2 1W0 6F3 1I1 6I3 1I2 6W3 1W1 1W2 1I3 1W3\n"
            "2F0 2F1 2F2 5F0 5F1 5F2 5I0 5W0 2F3 2I0 5I1 5W1 5I2 5F3 5W2 2I1 2W0 2I2 5I3 5W3 2W1 2I3 2W2 2W3\n"
            "3F0 4F0 3F1 4F1 3F2 4F2 4I0 3I0 4W0 3F3 3W0 4F3 4I1 3I1 4I2 3I2 4W1 4W2 4I3 3I3 4W3 3W1 3W2 3W3\n");
  EXPECT_EQ(to_text(lists_of(Schedule::VMin, {4, 4, 2})),
            "0F0 0F1 0F2 7F0 7I0 7W0 7F1 7I1 7W1 0F3 0I0 0W0 7F2 7I2 0I1 7W2 0W1 7F3 7I3 0I2 7W3 0W2 0I3 0W3\n"
            "1F0 1F1 6F0 6F1 6I0 6W0 1F2 6I1 6W1 1I0 1F3 1W0 6F2 1I1 6I2 6W2 1W1 6F3 1I2 6I3 6W3 1W2 1I3 1W3\n"
            "2F0 2F1 5F0 5F1 5I0 5W0 2F2 2I0 5I1 5W1 2W0 5F2 2F3 2I1 2W1 5I2 5F3 5W2 2I2 2W2 5I3 5W3 2I3 2W3\n"
            "3F0 4F0 3F1 4F1 4I0 3I0 4W0 3F2 3W0 4F2 4I1 3I1 4W1 3F3 3W1 4F3 4I2 3I2 4W2 3W2 4I3 3I3 4W3 3W3\n");
}

TEST(ScheduleMore, GoldenListsOfTwoRoutes) {  // stages from 4 on are those of the second route
  EXPECT_EQ(to_text(lists_of(Schedule::Chimera, {4, 4})),
            "0F0 0F1 7F0 7B0 7F1 7B1 0B0 0B1\n"
            "1F0 6F0 1F1 6F1 6B0 1B0 6B1 1B1\n"
            "5F0 2F0 5F1 2F1 2B0 5B0 2B1 5B1\n"
            "4F0 4F1 3F0 3B0 3F1 3B1 4B0 4B1\n");
  EXPECT_EQ(to_text(lists_of(Schedule::DualPipe, {4, 8})),
            "0F0 0F1 0F2 7F0 7I0 7W0 7F1 0F3&7B1 7F2&0B0 7B2 7F3&0B1 7B3 0I2 0W2 0I3 0W3\n"
            "1F0 6F0 1F1 6F1 1F2 6B0 6F2&1B0 1F3&6B1 6F3&1B1 6B2 1B2 6I3 1I3 6W3 1W3\n"
            "5F0 2F0 5F1 2F1 5F2 2B0 2F2&5B0 5F3&2B1 2F3&5B1 2B2 5B2 2I3 5I3 2W3 5W3\n"
            "4F0 4F1 4F2 3F0 3I0 3W0 3F1 4F3&3B1 3F2&4B0 3B2 3F3&4B1 3B3 4I2 4W2 4I3 4W3\n");
  EXPECT_EQ(to_text(lists_of(Schedule::DualPipeV, {2, 4, 2})),
            "0F0 0F1 0F2 3F0 3I0 3W0 3F1 0F3&3B1 3F2&0B0 3B2 3F3&0B1 3B3 0I2 0W2 0I3 0W3\n"
            "1F0 2F0 1F1 2F1 1F2 2B0 2F2&1B0 1F3&2B1 2F3&1B1 2B2 1B2 2I3 1I3 2W3 1W3\n");
}

TEST(ScheduleMore, GoldenListsOfInterleavedWeights) {
  EXPECT_EQ(to_text(lists_of(Schedule::InterleavedZeroBubble, {2, 4, 2})),
            "0F0 0F1 2F0 2F1 2I0 2W0 0F2 2I1 2W1 0F3 0I0 0W0 2F2 0I1 0W1 2F3 2I2 2W2 2I3 2W3 0I2 0W2 0I3 0W3\n"
            "1F0 1F1 3F0 3I0 3F1 3I1 3W0 1F2 1I0 3W1 1F3 1I1 1W0 3F2 3I2 1W1 3F3 3I3 3W2 1I2 3W3 1I3 1W2 1W3\n");
}

// Makespan / idle of the worst rank with F = I = W = 1 of a rank (of a chunk for dualpipe-v), in halves.
TEST(ScheduleMore, GoldenTable) {
  const ScheduleShape columns[] = {{2, 4}, {3, 6}, {4, 8}, {4, 12}, {8, 16}, {8, 32}};
  struct Row {
    Schedule id;
    std::int64_t f, i, w, saved;  // of a chunk, in halves
    double makespan[6], idle[6];
  };
  const double none = -1;
  const Row rows[] = {{Schedule::VHalf, 1, 1, 1, 0, {12.5, 20.5, 26.5, 38.5, 56.5, 104.5}, {0.5, 2.5, 2.5, 2.5, 8.5, 8.5}},
                      {Schedule::VMin, 1, 1, 1, 0, {12.5, 20.5, 29.5, 41.5, 60.5, 108.5}, {0.5, 2.5, 5.5, 5.5, 12.5, 12.5}},
                      {Schedule::Chimera, 2, 2, 2, 0, {12, none, 30, 44, 66, 126}, {0, none, 6, 8, 18, 30}},
                      {Schedule::DualPipe, 2, 2, 2, 0, {12, none, 26, 38, 54, 102}, {0, none, 2, 2, 6, 6}},
                      {Schedule::DualPipe, 2, 2, 2, 1, {11.5, none, 24, 34, 49, 89}, {0, none, 1.5, 1.5, 4.5, 4.5}},
                      {Schedule::DualPipeV, 2, 2, 2, 0, {26, 40, 54, 78, 110, 206}, {2, 4, 6, 6, 14, 14}},
                      {Schedule::DualPipeV, 2, 2, 2, 1, {24, 36.5, 49, 69, 99, 179}, {1.5, 3, 4.5, 4.5, 10.5, 10.5}}};
  for (const Row& row : rows)
    for (std::size_t k = 0; k < 6; ++k) {
      if (row.makespan[k] == none) continue;
      const bool two = schedule_entry(row.id).chunks == Chunks::Two;
      const ScheduleShape shape = {.p = columns[k].p, .m = columns[k].m, .v = two ? 2 : 1};
      const auto timing = timed(row.id, shape, times_of(row.id, shape, row.f, row.i, row.w, row.saved));
      const std::string where = name_of(row.id) + (" p" + std::to_string(shape.p)) + " m" + std::to_string(shape.m);
      EXPECT_EQ(static_cast<double>(timing.makespan) / 2, row.makespan[k]) << where;
      EXPECT_EQ(static_cast<double>(*std::max_element(timing.idle.begin(), timing.idle.end())) / 2, row.idle[k]) << where;
    }
}

TEST(ScheduleMore, MorePointsOfTwoRoutes) {
  const auto makespan = [](Schedule id, ScheduleShape shape, std::int64_t f, std::int64_t i, std::int64_t w,
                           std::int64_t saved = 0) { return timed(id, shape, times_of(id, shape, f, i, w, saved)).makespan; };
  // a backward as long as a forward: F = 2, I = W = 1, in halves
  for (const auto& [p, m, expected] :
       {std::array{4, 4, 10}, {4, 8, 18}, {4, 16, 34}, {8, 8, 22}, {8, 16, 38}, {8, 32, 70}, {16, 16, 46}})
    EXPECT_EQ(makespan(Schedule::Chimera, {p, m}, 2, 1, 1), 2 * expected) << p << " " << m;
  for (const auto& [p, m, expected] : {std::array{4, 4, 16}, {4, 16, 58}, {8, 8, 36}})
    EXPECT_EQ(makespan(Schedule::Chimera, {p, m}, 1, 1, 1), expected) << p << " " << m;
  EXPECT_EQ(makespan(Schedule::DualPipe, {8, 20}, 2, 2, 2), 2 * 66);
  EXPECT_EQ(makespan(Schedule::DualPipe, {8, 20}, 2, 2, 2, 1), 2 * 59);
  EXPECT_EQ(makespan(Schedule::DualPipeV, {4, 16, 2}, 2, 2, 2), 2 * 102);
  EXPECT_EQ(makespan(Schedule::DualPipeV, {4, 16, 2}, 2, 2, 2, 1), 2 * 89);
  EXPECT_EQ(makespan(Schedule::DualPipeV, {8, 24, 2}, 2, 2, 2), 2 * 158);
  EXPECT_EQ(makespan(Schedule::DualPipeV, {8, 24, 2}, 2, 2, 2, 1), 2 * 139);
}

TEST(ScheduleMore, GoldenPeaks) {
  const auto peaks = [](Schedule id, ScheduleShape shape) { return peak_in_flight(lists_of(id, shape)); };
  EXPECT_EQ(peaks(Schedule::LoopedBfs, {4, 8, 2}), std::vector<int>(4, 16));
  EXPECT_EQ(peaks(Schedule::LoopedBfs, {8, 32, 2}), std::vector<int>(8, 64));
  EXPECT_EQ(peaks(Schedule::InterleavedZeroBubble, {4, 8, 2}), std::vector<int>(4, 8));
  EXPECT_EQ(peaks(Schedule::InterleavedZeroBubble, {8, 32, 2}), std::vector<int>(8, 16));
  EXPECT_EQ(peaks(Schedule::VHalf, {4, 8, 2}), std::vector<int>(4, 6));
  EXPECT_EQ(peaks(Schedule::VHalf, {8, 32, 2}), std::vector<int>(8, 10));
  EXPECT_EQ(peaks(Schedule::VMin, {4, 8, 2}), std::vector<int>(4, 4));
  EXPECT_EQ(peaks(Schedule::VMin, {8, 32, 2}), std::vector<int>(8, 8));
  EXPECT_EQ(peaks(Schedule::Chimera, {4, 8}), (std::vector<int>{3, 4, 4, 3}));
  EXPECT_EQ(peaks(Schedule::Chimera, {8, 32}), (std::vector<int>{5, 6, 7, 8, 8, 7, 6, 5}));
  EXPECT_EQ(peaks(Schedule::DualPipe, {4, 8}), std::vector<int>(4, 5));
  EXPECT_EQ(peaks(Schedule::DualPipe, {8, 32}), std::vector<int>(8, 9));
  EXPECT_EQ(peaks(Schedule::DualPipeV, {4, 8, 2}), std::vector<int>(4, 9));
  EXPECT_EQ(peaks(Schedule::DualPipeV, {8, 32, 2}), std::vector<int>(8, 17));
}

// Idle time of the worst rank with F = I = W = 2 of a rank, and chunks in flight, for every p from 2 on and m >= p.
TEST(ScheduleMore, ClosedFormsOfLessMemoryOnAV) {
  for (const int p : {2, 3, 4, 5, 6, 7, 8, 9, 10, 12, 16, 20, 24})
    for (const int m : {p, p + 1, 2 * p, 3 * p + 1}) {
      const ScheduleShape shape = {.p = p, .m = m, .v = 2};
      const auto idle = [&](Schedule id) {
        const auto timing = timed(id, shape, times_of(id, shape, 1, 1, 1));
        return *std::max_element(timing.idle.begin(), timing.idle.end());
      };
      const std::string where = "p " + std::to_string(p) + " m " + std::to_string(m);
      EXPECT_EQ(idle(Schedule::VHalf), p == 2 ? 1 : p % 2 == 0 ? 3 * p - 7 : 3 * p - 4) << where;
      EXPECT_EQ(idle(Schedule::VMin), p % 3 == 1 ? 4 * p - 5 : 4 * p - 7) << where;
      const auto peak = [&](Schedule id) {
        const std::vector<int> peaks = peak_in_flight(lists_of(id, shape));
        return *std::max_element(peaks.begin(), peaks.end());
      };
      EXPECT_EQ(peak(Schedule::VHalf), p % 2 == 0 ? p + 2 : p + 1) << where;
      EXPECT_EQ(peak(Schedule::VMin), 2 * ((p + 1) / 3 + 1)) << where;
    }
}

TEST(ScheduleMore, ClosedFormsOfChimera) {
  for (const int p : {2, 4, 8, 16})
    for (int m = p; m <= 4 * p; m += p)
      for (const std::int64_t f : {1, 3}) {
        const ScheduleShape shape = {.p = p, .m = m};
        const auto idle = [&](std::int64_t backward) {  // I and W of a whole backward
          const auto timing =
              timed(Schedule::Chimera, shape, times_of(Schedule::Chimera, shape, 2 * f, backward / 2, backward / 2));
          return timing.makespan - m * (2 * f + backward);
        };
        EXPECT_EQ(idle(2 * f), (p - 2) * 2 * f) << p << " " << m;
        EXPECT_EQ(idle(4 * f), (m / p + 1) * (p - 2) * 2 * f) << p << " " << m;
      }
}

// F = I >= W, whatever a cell saves: 2n(F+B) - (2n-2H-1) saved + (H-1)(F&B+B-3W), of an arm of H ranks with n micro-batches a chunk.
TEST(ScheduleMore, ClosedFormsOfCells) {
  for (const Schedule id : {Schedule::DualPipe, Schedule::DualPipeV})
    for (const int p : {2, 4, 6, 8})
      for (const int m : {2 * p, 2 * p + 2, 3 * p, 5 * p})
        for (const auto& [f, w] : {std::pair<std::int64_t, std::int64_t>{4, 4}, {4, 2}, {6, 1}, {10, 9}})
          for (const std::int64_t part : {0, 1, 2, 4}) {
            const bool routes = id == Schedule::DualPipe;
            const ScheduleShape shape = {.p = p, .m = m, .v = routes ? 1 : 2};
            const std::int64_t B = f + w, saved = f * part / 4, H = routes ? p / 2 : p, n = routes ? m / 2 : m;
            const auto timing = timed(id, shape, times_of(id, shape, f, f, w, saved));
            const std::int64_t fill = (H - 1) * (f + B - saved + B - 3 * w);
            EXPECT_EQ(timing.makespan, 2 * n * (f + B) - (2 * n - 2 * H - 1) * saved + fill)
                << name_of(id) << " p " << p << " m " << m << " F " << f << " W " << w << " saved " << saved;
            EXPECT_EQ(*std::max_element(timing.idle.begin(), timing.idle.end()), fill);
          }
}

// Unequal costs, docs/schedules.md: makespan and idle of the whole, of the worst rank.
TEST(ScheduleMore, UnequalCosts) {
  struct Row {
    Schedule id;
    double makespan[5];
  };
  struct Column {
    std::int64_t f, i, w;  // of a chunk, in twentieths
    int p, m;
    double unit;
  };
  const Column columns[] = {
      {10, 12, 8, 4, 12, 2}, {10, 12, 8, 8, 24, 2}, {10, 11, 9, 4, 12, 20}, {2, 2, 1, 4, 12, 4}, {2, 3, 1, 4, 12, 2}};
  for (const Row& row :
       {Row{Schedule::VHalf, {426, 900, 40.55, 38.25, 97.5}}, Row{Schedule::VMin, {482, 996, 44.85, 40.75, 116.5}}})
    for (std::size_t k = 0; k < 5; ++k) {
      const Column& c = columns[k];
      const ScheduleShape shape = {.p = c.p, .m = c.m, .v = 2};
      EXPECT_NEAR(static_cast<double>(timed(row.id, shape, times_of(row.id, shape, c.f, c.i, c.w)).makespan) / c.unit,
                  row.makespan[k], 1e-9)
          << name_of(row.id) << " column " << k;
    }
}

// Latency adds to the idle time: V-Half (2m+14)c at p 4, (2m+40)c at p 8; V-Min (4m+6)c, (5m+20)c; c at most 1/4 of F = I = W of a rank.
TEST(ScheduleMore, LatencyOfLessMemoryOnAV) {
  for (const int p : {4, 8})
    for (const int times : {2, 3, 4, 8})
      for (const std::int64_t c : {1, 2}) {
        const ScheduleShape shape = {.p = p, .m = times * p, .v = 2};
        const auto added = [&](Schedule id) {
          Times t = times_of(id, shape, 4, 4, 4);  // F = 8 of a rank
          const std::int64_t without = timed(id, shape, t).makespan;
          t.latency = c;
          return timed(id, shape, t).makespan - without;
        };
        EXPECT_EQ(added(Schedule::VHalf), (2 * shape.m + (p == 4 ? 14 : 40)) * c) << p << " " << shape.m;
        EXPECT_EQ(added(Schedule::VMin), (p == 4 ? 4 * shape.m + 6 : 5 * shape.m + 20) * c) << p << " " << shape.m;
      }
}

TEST(ScheduleMore, LatencyOfBreadthFirst) {  // (p-1)(F+B)/v + 2c(p-1), c at most one chunk's F, I or W
  for (const int p : {2, 3, 4, 8})
    for (const int v : {2, 3, 4})
      for (const std::int64_t c : {1, 4}) {
        const ScheduleShape shape = {.p = p, .m = 2 * p, .v = v};
        Times t = times_of(Schedule::LoopedBfs, shape, 4, 6, 5);
        t.latency = c;
        EXPECT_EQ(timed(Schedule::LoopedBfs, shape, t).makespan, (shape.m * v + p - 1) * 15 + 2 * c * (p - 1)) << p << " " << v;
      }
}

// A cell begins when both may, lasts as long as both less what is saved, and ends both.
TEST(ScheduleMore, ACellByHand) {
  const ScheduleLists lists = parse_schedule_text("0F0 0F1&0B0 0B1\n");
  Times times = equal_times<std::int64_t>(1, 2, 3, 4);
  times.saved = 1;
  const auto timing = evaluate(lists, times);
  ASSERT_TRUE(timing.has_value());
  EXPECT_EQ(timing->begin, (std::vector<std::vector<std::int64_t>>{{0, 2, 2, 10}}));
  EXPECT_EQ(timing->end, (std::vector<std::vector<std::int64_t>>{{2, 10, 10, 17}}));
  EXPECT_EQ(timing->idle, (std::vector<std::int64_t>{0}));
}

// Property i, from the lists alone: a version is made by each update and must be there when a forward or a backward reads it. Versions
// are counted from the newest at the start of a run that follows many others.
TEST(ScheduleMore, VersionsOfPipelinesWithoutAFlush) {
  for (const int p : {1, 2, 3, 4, 5, 8})
    for (int m = 1; m <= 4 * p; ++m)
      for (int r = 0; r < p; ++r) {
        const ScheduleShape shape = {.p = p, .m = m};
        const int warm_up = std::min(p - 1 - r, m - 1);
        const auto dream = versions_read(schedule_entry(Schedule::PipeDream), shape, r);
        const auto mare = versions_read(schedule_entry(Schedule::PipeMare), shape, r);
        int most = 0;  // versions that some backward still reads, and the newest
        for (int i = 0; i < m; ++i) {
          const auto at = static_cast<std::size_t>(i);
          EXPECT_EQ(dream[at], (VersionsRead{i - warm_up, i - warm_up}));
          EXPECT_EQ(mare[at], (VersionsRead{i - warm_up, i}));
          EXPECT_EQ(i - dream[at].backward, warm_up);  // updates between its forward and its backward
          most = std::max(most, i - dream[at].backward + 1);
        }
        EXPECT_EQ(most, std::min(p - r, m));
        const int kept = schedule_entry(Schedule::PipeDream).weight_versions(shape, r);
        EXPECT_TRUE(m % most == 0 ? kept == most : kept > most && kept < 2 * most) << p << " " << m << " " << r;
        EXPECT_EQ(forwards_ahead(schedule_entry(Schedule::PipeDream).lists(shape)[static_cast<std::size_t>(r)]), warm_up);
      }
}

// Of `needed` items in a row, over the border of two runs too, no two have one slot; and so many items take no more slots than they must:
// at least `needed`, and as many as the largest of the groups that fit.
TEST(ScheduleMore, RingsTurnTheSameWayInEveryRun) {
  for (int items = 1; items <= 40; ++items)
    for (int needed = 1; needed <= items; ++needed) {
      const int slots = ring_slots(items, needed), groups = items / needed;
      EXPECT_EQ(slots, (items + groups - 1) / groups);
      for (int i = 0; i < items; ++i) {
        EXPECT_LT(ring_slot(i, items, needed), slots);
        for (int later = i + 1; later < i + needed; ++later)
          EXPECT_NE(ring_slot(i, items, needed), ring_slot(later % items, items, needed)) << items << " " << needed << " " << i;
      }
    }
  EXPECT_EQ(ring_slots(12, 4), 4);
  EXPECT_EQ(ring_slots(13, 4), 5);
  EXPECT_EQ(ring_slots(7, 4), 7);  // two in a run would need 8
}

// The needed version exists when a forward asks for it, if and only if groups have at least p - 1 micro-batches; never more than two.
TEST(ScheduleMore, TwoVersionsAreEnough) {
  const ScheduleEntry& entry = schedule_entry(Schedule::PipeDream2BW);
  for (const int p : {2, 3, 4, 5, 8})
    for (int g = 1; g <= 2 * p; ++g)
      for (const int groups : {1, 2, 5, 30}) {
        const ScheduleShape shape = {.p = p, .m = groups * g, .g = g};
        EXPECT_EQ(!entry.refuse(shape), g >= p - 1) << p << " " << g;
        bool there = true;
        for (int r = 0; r < p; ++r) {
          const auto read = versions_read(entry, shape, r);
          int backwards = 0;
          const ScheduleLists lists = entry.lists(shape);
          for (const ScheduleOp& op : lists[static_cast<std::size_t>(r)]) {
            const auto& of = read[static_cast<std::size_t>(op.microbatch)];
            EXPECT_EQ(of.forward, of.backward);
            EXPECT_EQ(of.forward, op.microbatch / g - 1);
            // Forwards ahead of the first backward are issued before the last backwards of the run before.
            const int done = op.microbatch < forwards_ahead(lists[static_cast<std::size_t>(r)]) && op.work == Work::F
                                 ? op.microbatch - forwards_ahead(lists[static_cast<std::size_t>(r)])
                                 : backwards;
            const int newest = (done + 10 * g) / g - 10;
            there &= of.forward <= newest;
            EXPECT_TRUE(g < p - 1 || of.forward >= newest - 1)
                << p << " " << g << " rank " << r << " " << to_text(op);  // one of two
            backwards += op.work == Work::B;
          }
        }
        EXPECT_TRUE(there || g < p - 1) << p << " " << g;
        EXPECT_FALSE(there && g < p - 1 && groups * g >= 3 * p) << p << " " << g;
      }
}

TEST(ScheduleMore, ReadsWhatPyTorchWrites) {
  const ScheduleLists lists = lists_of(Schedule::DualPipeV, {2, 4, 2});
  const std::string csv =
      "0UNSHARD,0F0,0SEND_F0,0F1,0F2,3RECV_F0,3F0,3I0,3W0,3F1,(0F3;3B1)OVERLAP_F_B,(3F2;0B0)OVERLAP_F_B,3B2,(3F3;0B1)OVERLAP_F_"
      "B,3B3,0I2,0W2,"
      "0I3,0W3,0REDUCE_GRAD\n"
      "1F0,2F0,1F1,2F1,1F2,2B0,(2F2;1B0)OVERLAP_F_B,(1F3;2B1)OVERLAP_F_B,(2F3;1B1)OVERLAP_F_B,2B2,1B2,2I3,1I3,2W3,1W3\n";
  EXPECT_EQ(parse_schedule_text(csv), lists);
  EXPECT_EQ(wrong_size(lists, {2, 4, 2}), std::nullopt);
  EXPECT_EQ(wrong_size(lists, {2, 8, 2}), "4 micro-batches where the strategy has 8");
  EXPECT_EQ(wrong_size(lists, {4, 4, 1}), "2 lists for 4 pipeline ranks");
  EXPECT_EQ(wrong_size(lists, {2, 4, 4}), "4 stages where the strategy has 8");
  EXPECT_EQ(wrong_size(parse_schedule_text("0F0 0B0 1F0 1B0 2F0 2B0\n3F0 3B0\n"), {2, 1, 2}),
            "3 stages on one rank where the strategy has 2 virtual stages per rank");
}

}  // namespace foreshard::schedule_more_test
