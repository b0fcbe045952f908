// Makespans against docs/schedules.md in exact integers. F, I, W are times of one chunk, so a rank's forward takes v F.
#include <gtest/gtest.h>

#include <algorithm>
#include <numeric>
#include <random>

#include "strategy/schedule/schedule_read.h"
#include "tests/strategy/support_schedules.h"

namespace foreshard::schedule_formulas_test {

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
                      {Schedule::Interleaved, 4, {12.75, 19.5, 26.25, 38.25, 53.25, 101.25}},
                      {Schedule::ZeroBubbleH1, 1, {13, 20, 27, 39, 55, 103}},
                      {Schedule::ZeroBubbleH2, 1, {13, 20, 27, 39, 55, 103}},
                      {Schedule::ZeroBubble2p, 1, {13, 20, 27, 39, 55, 103}},
                      {Schedule::ZeroBubbleV, 2, {12.5, 19, 25.5, 37.5, 51.5, 99.5}},
                      {Schedule::LoopedBfs, 2, {13.5, 21, 28.5, 40.5, 58.5, 106.5}},
                      {Schedule::LoopedBfs, 4, {12.75, 19.5, 26.25, 38.25, 53.25, 101.25}},
                      {Schedule::InterleavedZeroBubble, 2, {12.5, 19, 25.5, 37.5, 51.5, 99.5}}};
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
  EXPECT_EQ(peaks(Schedule::ZeroBubbleH1, {4, 8}), std::vector<int>(4, 4));
  EXPECT_EQ(peaks(Schedule::ZeroBubbleH1, {8, 32}), std::vector<int>(8, 8));
  EXPECT_EQ(peaks(Schedule::ZeroBubbleH2, {4, 8}), std::vector<int>(4, 7));
  EXPECT_EQ(peaks(Schedule::ZeroBubbleH2, {8, 32}), std::vector<int>(8, 15));
  EXPECT_EQ(peaks(Schedule::ZeroBubbleV, {4, 8, 2}), std::vector<int>(4, 8));  // chunks of half the size
  EXPECT_EQ(peaks(Schedule::ZeroBubbleV, {8, 32, 2}), std::vector<int>(8, 16));
}

// Property c: idle time of equal stages, whatever the costs; g: busy time is the same for all. In times of a chunk; of zb-h1 and
// zb-h2 for enough micro-batches (p and 2p - 1), of zb-v where W <= F <= I as well.
static std::int64_t idle_of(const ScheduleCase& c, const Costs& t) {
  const std::int64_t hops = c.shape.p - 1;
  switch (c.entry->id) {
    case Schedule::GPipe:
    case Schedule::OneFOneB:
    case Schedule::Interleaved: return hops * t.both();
    case Schedule::ZeroBubbleH1: return hops * std::max({t.f, t.i, t.f + t.i - t.w});
    case Schedule::ZeroBubbleH2: return hops * std::max({t.f, t.i - t.f, t.f + t.i - 2 * t.w});
    case Schedule::ZeroBubbleV: return hops * std::max(t.i, 2 * (t.i - t.w));
    case Schedule::LoopedBfs: return hops * t.both();
    case Schedule::InterleavedZeroBubble: return hops * std::max({t.f, t.i, t.f + t.i - t.w});
    default: return -1;  // schedule_more_test.cpp
  }
}
static bool has_formula(const ScheduleCase& c, const Costs& t) {
  if (c.entry->id == Schedule::ZeroBubbleH1) return c.shape.m >= c.shape.p;
  if (c.entry->id == Schedule::ZeroBubbleH2) return c.shape.m >= 2 * c.shape.p - 1;
  if (c.entry->id == Schedule::ZeroBubbleV) return c.shape.m >= 2 * c.shape.p - 1 && t.w <= t.f && t.f <= t.i;
  return idle_of(c, t) >= 0;
}

TEST(ScheduleFormulas, IdleOfEqualStages) {
  for (const ScheduleCase& c : all_schedule_cases())
    for (const Costs& costs : all_costs) {
      if (!has_formula(c, costs)) continue;
      const auto timing = evaluate(c.lists, equal_times(c.stages(), costs.f, costs.i, costs.w));
      ASSERT_TRUE(timing.has_value()) << c.name();
      ASSERT_EQ(timing->makespan, c.shape.m * c.shape.v * costs.both() + idle_of(c, costs)) << c.name();
      for (const std::int64_t idle : timing->idle) ASSERT_EQ(idle, idle_of(c, costs)) << c.name();
    }
}

// What stays when the ranks may begin their next step without waiting for each other: from a rank's first action to its last.
// zb-h2: (p-1) max(0, I-F, F+I-2W) on the worst rank; zb-v: (p-1) 2(I-W) of a chunk. Both nothing for equal F, I and W.
TEST(ScheduleFormulas, IdleWithinASpan) {
  for (const ScheduleCase& c : all_schedule_cases())
    for (const Costs& t : all_costs) {
      if (!has_formula(c, t) || c.shape.m < 2 * c.shape.p - 1) continue;
      std::int64_t expected = 0;
      if (c.entry->id == Schedule::ZeroBubbleH2)
        expected = (c.shape.p - 1) * std::max({std::int64_t{0}, t.i - t.f, t.f + t.i - 2 * t.w});
      else if (c.entry->id == Schedule::ZeroBubbleV)
        expected = (c.shape.p - 1) * 2 * (t.i - t.w);
      else
        continue;
      const auto timing = evaluate(c.lists, equal_times(c.stages(), t.f, t.i, t.w));
      ASSERT_TRUE(timing.has_value()) << c.name();
      std::int64_t worst = 0;
      for (std::size_t rank = 0; rank < c.lists.size(); ++rank)
        worst = std::max(worst, timing->end[rank].back() - timing->begin[rank].front() - c.shape.m * c.shape.v * t.both());
      ASSERT_EQ(worst, expected) << c.name() << " " << t.f << " " << t.i << " " << t.w;
    }
}

TEST(ScheduleFormulas, ZeroBubbleH1Latency) {  // (p-1)(F+I-W+4c) for W <= min(F, I), m > p, c up to half of the shortest
  for (const int p : {1, 2, 3, 4, 5, 8})
    for (int m = p + 1; m <= 3 * p + 1; ++m)
      for (const Costs& costs : all_costs)
        for (const std::int64_t tenths : {1, 3, 5}) {
          if (costs.w > std::min(costs.f, costs.i)) continue;
          const std::int64_t c = tenths * std::min({costs.f, costs.i, costs.w}), scale = 10;
          const Times times = equal_times(p, scale * costs.f, scale * costs.i, scale * costs.w, c);
          ASSERT_EQ(makespan_of(schedule_entry(Schedule::ZeroBubbleH1).lists({.p = p, .m = m}), times),
                    m * scale * costs.both() + (p - 1) * (scale * (costs.f + costs.i - costs.w) + 4 * c))
              << "p " << p << " m " << m;
        }
}

// Brute force: no order of one rank's F, I and W with at most `memory` micro-batches in flight ends sooner, for two ranks with
// equal times. Depth first over all pairs of lists, as the next action of either rank.
namespace {
struct Ends {
  std::int64_t at[2][3][4] = {};  // [rank][F I W][micro-batch], 0: not yet
};
class BruteForce {
 public:
  BruteForce(int m, int memory, Costs t) : m_(m), memory_(memory), t_(t) {}
  std::int64_t best() {
    int next[2][3] = {};
    std::int64_t now[2] = {};
    go({}, next, now);
    return best_;
  }

 private:
  void go(const Ends& ends, int (&next)[2][3], std::int64_t (&now)[2]) {
    for (int r = 0; r < 2; ++r) {
      const std::int64_t left = (m_ - next[r][0]) * t_.f + (m_ - next[r][1]) * t_.i + (m_ - next[r][2]) * t_.w;
      if (now[r] + left >= best_) return;
    }
    if (next[0][2] == m_ && next[1][2] == m_) {
      best_ = std::min(best_, std::max(now[0], now[1]));
      return;
    }
    for (int r = 0; r < 2; ++r)
      for (int kind = 0; kind < 3; ++kind) {
        const int i = next[r][kind];
        if (i == m_ || (kind == 0 && next[r][0] - next[r][2] >= memory_)) continue;
        std::int64_t ready = 0;
        if (kind == 0 && r == 1) ready = ends.at[0][0][i] ? ends.at[0][0][i] : -1;
        if (kind == 1) ready = ends.at[r][0][i] ? ends.at[r][0][i] : -1;
        if (kind == 1 && r == 0) ready = ready < 0 || !ends.at[1][1][i] ? -1 : std::max(ready, ends.at[1][1][i]);
        if (kind == 2) ready = ends.at[r][1][i] ? ends.at[r][1][i] : -1;
        if (ready < 0) continue;
        Ends further = ends;
        const std::int64_t before = now[r];
        now[r] = std::max(before, ready) + (kind == 0 ? t_.f : kind == 1 ? t_.i : t_.w);
        further.at[r][kind][i] = now[r];
        ++next[r][kind];
        go(further, next, now);
        --next[r][kind];
        now[r] = before;
      }
  }

  int m_, memory_;
  Costs t_;
  std::int64_t best_ = 1 << 20;
};
}  // namespace

TEST(ScheduleFormulas, NoOrderOfTwoRanksIsFaster) {
  for (const Costs& t : {Costs{1, 1, 1}, Costs{10, 12, 8}, Costs{2, 3, 1}})
    for (int m = 2; m <= 3; ++m) {
      const Times times = equal_times(2, t.f, t.i, t.w);
      EXPECT_EQ(makespan_of(schedule_entry(Schedule::ZeroBubbleH1).lists({.p = 2, .m = m}), times), BruteForce(m, 2, t).best())
          << "zb-h1 m " << m;
      if (m < 3) continue;
      EXPECT_EQ(makespan_of(schedule_entry(Schedule::ZeroBubbleH2).lists({.p = 2, .m = m}), times), BruteForce(m, 3, t).best())
          << "zb-h2 m " << m;
    }
}

TEST(ScheduleFormulas, PeaksOfEveryRank) {  // property d
  for (const ScheduleCase& c : all_schedule_cases()) {
    const auto [p, m, v, group, times] = c.shape;
    const int g = group == 0 ? p : group;
    const std::vector<int> peaks = peak_in_flight(c.lists);
    for (int r = 0; r < p; ++r) {
      int expected = 0;
      switch (c.entry->id) {
        case Schedule::GPipe: expected = m; break;
        case Schedule::OneFOneB: expected = std::min(p - r, m); break;
        case Schedule::Interleaved: expected = std::min(2 * (p - 1 - r) + (v - 1) * g + 1, m * v); break;
        case Schedule::ZeroBubbleH1: expected = std::min(p, m); break;
        case Schedule::ZeroBubbleH2: expected = std::min(2 * p - 1, m); break;
        case Schedule::ZeroBubbleV:
          if (m < 2 * p - 1) continue;
          expected = 2 * p;
          break;
        case Schedule::LoopedBfs: expected = m * v; break;
        case Schedule::InterleavedZeroBubble: expected = std::min(p + (v - 1) * g, m * v); break;
        default: continue;  // schedule_more_test.cpp
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

}  // namespace foreshard::schedule_formulas_test
