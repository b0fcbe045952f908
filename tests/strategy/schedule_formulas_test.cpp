// Makespans against docs/schedules.md in exact integers. F, I, W are times of one chunk, so a rank's forward takes v F.
#include <gtest/gtest.h>

#include <algorithm>
#include <numeric>
#include <random>

#include "support_schedules.h"

namespace foreshard {

using Times = ScheduleTimes<std::int64_t>;
struct Costs {
  std::int64_t f, i, w;
  std::int64_t both() const { return f + i + w; }
};
// Balanced, backward twice the forward, W > F, W > I, I > F, very unequal.
static const std::vector<Costs> all_costs = {{1, 1, 1}, {10, 12, 8}, {2, 3, 1}, {1, 1, 3}, {3, 1, 2}, {7, 5, 11}, {1, 9, 4}};

static std::int64_t makespan_of(const ScheduleLists& lists, const Times& times) {
  const auto timing = evaluate(lists, times);
  EXPECT_TRUE(timing.has_value());
  return timing ? timing->makespan : -1;
}

TEST(ScheduleFormulas, GoldenTable) {  // makespan with F = I = W = 1 per rank, in quarters: a chunk of v takes 4 / v
  const ScheduleShape columns[] = {{2, 4}, {3, 6}, {4, 8}, {4, 12}, {8, 16}, {8, 32}};
  struct Row {
    Schedule id;
    int v;
    double makespan[6];
  };
  const Row rows[] = {{Schedule::GPipe, 1, {15, 24, 33, 45, 69, 117}},
                      {Schedule::OneFOneB, 1, {15, 24, 33, 45, 69, 117}},
                      {Schedule::Interleaved, 2, {13.5, 21, 28.5, 40.5, 58.5, 106.5}},
                      {Schedule::Interleaved, 4, {12.75, 19.5, 26.25, 38.25, 53.25, 101.25}}};
  for (const Row& row : rows)
    for (std::size_t k = 0; k < 6; ++k) {
      const ScheduleShape shape = {.p = columns[k].p, .m = columns[k].m, .v = row.v};
      const std::int64_t quarter = 4 / row.v;
      const auto timing = evaluate(schedule_entry(row.id).lists(shape),
                                   equal_times<std::int64_t>(shape.p * shape.v, quarter, quarter, quarter));
      ASSERT_TRUE(timing.has_value());
      EXPECT_EQ(static_cast<double>(timing->makespan) / 4, row.makespan[k]);
      const double idle = row.makespan[k] - 3 * shape.m;  // second number of the cell
      for (const std::int64_t rank_idle : timing->idle) EXPECT_EQ(static_cast<double>(rank_idle) / 4, idle);
    }
}

TEST(ScheduleFormulas, GoldenPeaks) {  // chunks in flight, rank 0 first, p4 m8 and p8 m32
  const auto peaks = [](Schedule id, ScheduleShape shape) { return peak_in_flight(schedule_entry(id).lists(shape)); };
  EXPECT_EQ(peaks(Schedule::GPipe, {4, 8}), (std::vector<int>{8, 8, 8, 8}));
  EXPECT_EQ(peaks(Schedule::OneFOneB, {4, 8}), (std::vector<int>{4, 3, 2, 1}));
  EXPECT_EQ(peaks(Schedule::Interleaved, {4, 8, 2}), (std::vector<int>{11, 9, 7, 5}));
  EXPECT_EQ(peaks(Schedule::Interleaved, {4, 8, 4}), (std::vector<int>{19, 17, 15, 13}));
  EXPECT_EQ(peaks(Schedule::OneFOneB, {8, 32}), (std::vector<int>{8, 7, 6, 5, 4, 3, 2, 1}));
  EXPECT_EQ(peaks(Schedule::Interleaved, {8, 32, 2}), (std::vector<int>{23, 21, 19, 17, 15, 13, 11, 9}));
  EXPECT_EQ(peaks(Schedule::Interleaved, {8, 32, 4}), (std::vector<int>{39, 37, 35, 33, 31, 29, 27, 25}));
}

// Property c: all three have idle (p-1)(F+B)/v on every rank, whatever the costs; g: busy time is the same for all.
TEST(ScheduleFormulas, IdleOfEqualStages) {
  for (const ScheduleCase& c : all_schedule_cases())
    for (const Costs& costs : all_costs) {
      const auto timing = evaluate(c.lists, equal_times(c.stages(), costs.f, costs.i, costs.w));
      ASSERT_TRUE(timing.has_value()) << c.name();
      ASSERT_EQ(timing->makespan, c.shape.m * c.shape.v * costs.both() + (c.shape.p - 1) * costs.both()) << c.name();
      for (const std::int64_t idle : timing->idle) ASSERT_EQ(idle, (c.shape.p - 1) * costs.both()) << c.name();
    }
}

TEST(ScheduleFormulas, PeaksOfEveryRank) {  // property d
  for (const ScheduleCase& c : all_schedule_cases()) {
    const auto [p, m, v, group] = c.shape;
    const int g = group == 0 ? p : group;
    const std::vector<int> peaks = peak_in_flight(c.lists);
    for (int r = 0; r < p; ++r) {
      int expected = 0;
      switch (c.entry->id) {
        case Schedule::GPipe: expected = m; break;
        case Schedule::OneFOneB: expected = std::min(p - r, m); break;
        case Schedule::Interleaved: expected = std::min(2 * (p - 1 - r) + (v - 1) * g + 1, m * v); break;
      }
      ASSERT_EQ(peaks[static_cast<std::size_t>(r)], expected) << c.name() << " rank " << r;
    }
  }
}

// Latency adds to the idle time of equal stages: property j.
TEST(ScheduleFormulas, GPipeLatency) {  // (p-1)(F+B+2c)
  for (const int p : {1, 2, 3, 4, 5, 8})
    for (int m = 1; m <= 3 * p + 1; ++m)
      for (const Costs& costs : all_costs)
        for (const std::int64_t c : {1, 2, 20}) {
          const std::int64_t scale = 10;  // c = 0.1, 0.2, 2
          const Times times = equal_times(p, scale * costs.f, scale * costs.i, scale * costs.w, c);
          ASSERT_EQ(makespan_of(schedule_entry(Schedule::GPipe).lists({.p = p, .m = m}), times),
                    m * scale * costs.both() + (p - 1) * (scale * costs.both() + 2 * c));
        }
}

TEST(ScheduleFormulas, OneFOneBLatency) {  // (p-1)(F+B) + 2c [(p-1) + floor((m-1)(p-1)/p)]
  for (const int p : {1, 2, 3, 4, 5, 8})
    for (int m = 1; m <= 40; ++m)
      for (const Costs& costs : all_costs)
        for (const std::int64_t c : {1, 5, 13, 100}) {  // 0.1 to 10
          const std::int64_t scale = 10, hops = (p - 1) + (m - 1) * (p - 1) / p;
          const Times times = equal_times(p, scale * costs.f, scale * costs.i, scale * costs.w, c);
          ASSERT_EQ(makespan_of(schedule_entry(Schedule::OneFOneB).lists({.p = p, .m = m}), times),
                    (m + p - 1) * scale * costs.both() + 2 * c * hops)
              << "p " << p << " m " << m << " c " << c;
        }
}

TEST(ScheduleFormulas, InterleavedLatency) {  // p divides m, c up to one chunk op: (p-1)(F+B)/v + 2c(vp-1)
  for (const int p : {2, 3, 4, 5, 8})
    for (const int v : {2, 3, 4})
      for (const int rounds : {1, 2, 3, 5})
        for (const Costs& costs : all_costs)
          for (const std::int64_t tenths : {1, 5, 10}) {
            const std::int64_t c = tenths * std::min({costs.f, costs.i, costs.w}), scale = 10;
            const ScheduleLists lists = schedule_entry(Schedule::Interleaved).lists({.p = p, .m = rounds * p, .v = v});
            const Times times = equal_times(p * v, scale * costs.f, scale * costs.i, scale * costs.w, c);
            ASSERT_EQ(makespan_of(lists, times), (rounds * p * v + p - 1) * scale * costs.both() + 2 * c * (v * p - 1))
                << "p " << p << " v " << v << " m " << rounds * p << " c " << tenths << "/10";
          }
}

// ---- unequal stages
static Times random_times(std::mt19937_64& random, int stages) {
  const auto draw = [&] { return static_cast<std::int64_t>(1 + random() % 50); };
  Times times = equal_times<std::int64_t>(stages, 0, 0, 0);
  for (auto* list : {&times.forward, &times.input_grad, &times.weight_grad})
    for (std::int64_t& t : *list) t = draw();
  return times;
}
static std::int64_t sum(const std::vector<std::int64_t>& times) {
  return std::accumulate(times.begin(), times.end(), std::int64_t{0});
}
static std::vector<std::int64_t> backward_of(const Times& times) {
  std::vector<std::int64_t> backward;
  for (std::size_t s = 0; s < times.forward.size(); ++s) backward.push_back(times.input_grad[s] + times.weight_grad[s]);
  return backward;
}

TEST(ScheduleFormulas, GPipeWithUnequalStages) {  // property k: sum f + (m-1) max f + sum b + (m-1) max b
  std::mt19937_64 random(3000);
  for (int k = 0; k < 3000; ++k) {
    const int p = 1 + static_cast<int>(random() % 8), m = 1 + static_cast<int>(random() % 16);
    const Times times = random_times(random, p);
    const auto backward = backward_of(times);
    const auto most = [](const std::vector<std::int64_t>& t) { return *std::max_element(t.begin(), t.end()); };
    ASSERT_EQ(makespan_of(schedule_entry(Schedule::GPipe).lists({.p = p, .m = m}), times),
              sum(times.forward) + (m - 1) * most(times.forward) + sum(backward) + (m - 1) * most(backward));
  }
}

// Lower bound of every synchronous schedule with one stage per rank: max(sum(f+b), max_r [sum_{s<r}(f+b) +
// m(f_r+b_r)]); 1F1B reaches it in about half of the cases.
TEST(ScheduleFormulas, LowerBoundOfUnequalStages) {
  std::mt19937_64 random(41);
  int reached = 0, cases = 0;
  for (int k = 0; k < 1000; ++k) {
    const int p = 1 + static_cast<int>(random() % 8), m = 1 + static_cast<int>(random() % 16);
    const Times times = random_times(random, p);
    const auto backward = backward_of(times);
    std::int64_t bound = sum(times.forward) + sum(backward), before = 0;
    for (std::size_t r = 0; r < times.forward.size(); ++r) {
      const std::int64_t own = times.forward[r] + backward[r];
      bound = std::max(bound, before + m * own);
      before += own;
    }
    for (const Schedule id : {Schedule::GPipe, Schedule::OneFOneB}) {
      const std::int64_t makespan = makespan_of(schedule_entry(id).lists({.p = p, .m = m}), times);
      ASSERT_GE(makespan, bound);
      if (id == Schedule::OneFOneB) reached += makespan == bound, ++cases;
    }
  }
  EXPECT_GT(reached, cases / 4);
}

}  // namespace foreshard
