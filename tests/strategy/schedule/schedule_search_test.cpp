// The schedule search: limits kept, never slower than a rule, and close to the best of all orders.
#include "strategy/schedule/schedule_search.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdio>
#include <random>

namespace foreshard::schedule_search_test {

namespace {

ScheduleTimes<double> random_times(std::mt19937_64& random, int p) {
  ScheduleTimes<double> times;
  const auto draw = [&] { return static_cast<double>(1 + random() % 9); };
  for (int s = 0; s < p; ++s)
    times.forward.push_back(draw()), times.input_grad.push_back(draw()), times.weight_grad.push_back(draw());
  times.latency = static_cast<double>(random() % 3);
  return times;
}

// Depth first over all orders of two ranks, the next action of either. Micro-batches are alike, so each kind goes in order.
class AllOrders {
 public:
  AllOrders(const ScheduleSearch& search) : search_(search) {}
  double best() {
    go();
    return best_;
  }

 private:
  struct Rank {
    int next[3] = {};  // F, I, W
    double now = 0;
    double end[3][8] = {};
  };
  double lasts(int r, int kind) const {
    const auto s = static_cast<std::size_t>(r);
    return kind == 0 ? search_.times.forward[s] : kind == 1 ? search_.times.input_grad[s] : search_.times.weight_grad[s];
  }
  double ready(int r, int kind, int i) const {
    const auto has = [&](int rank, int k) { return ranks_[rank].next[k] > i; };
    if (kind == 0) return r == 0 ? 0 : has(0, 0) ? ranks_[0].end[0][i] + search_.times.latency : -1;
    if (kind == 2) return has(r, 1) ? 0 : -1;
    if (!has(r, 0)) return -1;
    if (r == 1) return ranks_[1].end[0][i];
    return has(1, 1) ? std::max(ranks_[0].end[0][i], ranks_[1].end[1][i] + search_.times.latency) : -1;
  }
  void go() {
    const int m = search_.microbatches;
    bool done = true;
    for (int r = 0; r < 2; ++r) {
      double left = ranks_[r].now;
      for (int kind = 0; kind < 3; ++kind)
        left += (m - ranks_[r].next[kind]) * lasts(r, kind), done &= ranks_[r].next[kind] == m;
      if (left >= best_) return;
    }
    if (done) {
      best_ = std::max(ranks_[0].now, ranks_[1].now);
      return;
    }
    for (int r = 0; r < 2; ++r)
      for (int kind = 0; kind < 3; ++kind) {
        Rank& rank = ranks_[r];
        const int i = rank.next[kind];
        if (i == m || (kind == 0 && rank.next[0] - rank.next[2] >= search_.most_in_flight[static_cast<std::size_t>(r)]))
          continue;
        const double from = ready(r, kind, i);
        if (from < 0) continue;
        const double before = rank.now;
        rank.now = rank.end[kind][i] = std::max(before, from) + lasts(r, kind);
        ++rank.next[kind];
        go();
        --rank.next[kind];
        rank.now = before;
      }
  }

  const ScheduleSearch& search_;
  Rank ranks_[2] = {};
  double best_ = 1e9;
};

FoundSchedule found(const ScheduleSearch& search) {
  auto answer = search_schedule(search);
  if (auto* refused = std::get_if<Infeasible>(&answer)) ADD_FAILURE() << refused->reason;
  return std::get<FoundSchedule>(std::move(answer));
}

}  // namespace

TEST(ScheduleSearch, BesideAllOrdersOfTwoRanks) {
  std::mt19937_64 random(24);
  double sum = 0, worst = 0;
  const int cases = 120;
  for (int k = 0; k < cases; ++k) {
    ScheduleSearch search{.microbatches = 2 + static_cast<int>(random() % 2), .times = random_times(random, 2)};
    for (int r = 0; r < 2; ++r) search.most_in_flight.push_back(1 + static_cast<int>(random() % 3));
    const double best = AllOrders(search).best(), ratio = found(search).makespan / best;
    ASSERT_GE(ratio, 1 - 1e-12);
    sum += ratio, worst = std::max(worst, ratio);
  }
  std::printf("search over all orders: mean %.4f, worst %.3f\n", sum / cases, worst);
  EXPECT_LE(sum / cases, 1.001);
  EXPECT_LE(worst, 1.03);
}

TEST(ScheduleSearch, KeepsLimitsAndIsNeverSlowerThanARule) {
  std::mt19937_64 random(7);
  int faster = 0, cases = 0;
  for (int k = 0; k < 60; ++k) {
    const int p = 2 + static_cast<int>(random() % 5), m = p + static_cast<int>(random() % 8);
    ScheduleSearch search{.microbatches = m, .times = random_times(random, p), .tries = 4000};
    for (int r = 0; r < p; ++r) search.most_in_flight.push_back(1 + static_cast<int>(random() % static_cast<unsigned>(2 * p)));
    const FoundSchedule best = found(search);
    EXPECT_EQ(incomplete(best.lists), std::nullopt);
    const auto timing = evaluate(best.lists, search.times);
    ASSERT_TRUE(timing.has_value());
    EXPECT_EQ(timing->makespan, best.makespan);
    const std::vector<int> peaks = peak_in_flight(best.lists);
    for (std::size_t r = 0; r < peaks.size(); ++r) EXPECT_LE(peaks[r], search.most_in_flight[r]);
    for (const Schedule id : {Schedule::OneFOneB, Schedule::GPipe, Schedule::ZeroBubbleH1, Schedule::ZeroBubbleH2}) {
      const ScheduleLists rule = schedule_entry(id).lists({.p = p, .m = m});
      const std::vector<int> kept = peak_in_flight(rule);
      if (!std::ranges::equal(kept, search.most_in_flight, std::ranges::less_equal{})) continue;
      const double time = evaluate(rule, search.times)->makespan;
      EXPECT_LE(best.makespan, time) << name_of(id);
      ++cases, faster += best.makespan < time;
    }
  }
  EXPECT_GT(cases, 20);
  EXPECT_GT(faster, cases / 2);
}

TEST(ScheduleSearch, NothingInFlightIsRefused) {
  const auto answer = search_schedule({.microbatches = 2, .times = equal_times<double>(2, 1, 1, 1), .most_in_flight = {1, 0}});
  ASSERT_TRUE(std::holds_alternative<Infeasible>(answer));
  EXPECT_EQ(std::get<Infeasible>(answer).reason, "pipeline rank 1 may keep no micro-batch in flight");
}

}  // namespace foreshard::schedule_search_test
