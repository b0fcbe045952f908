// The order of gradient sums: the hand case of techniques.md 4.2, laws, brute force.
#include "strategy/state/sum_order.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <random>

namespace foreshard::sum_order_test {
namespace {

// Time 0 is the start of the backward of layer 2. Layer 1 is needed first.
std::vector<SummedUnit> two_layers() {
  return {{.ready = {2}, .bytes = 2, .forward = {1}}, {.ready = {1}, .bytes = 4, .forward = {1}}};
}

double end(const std::vector<SummedUnit>& units, SumOrder order, double partition, double latency = 0, double credit = 0) {
  return schedule_sums(units,
                       {.bandwidth = {1}, .latency = {latency}, .order = order, .partition = partition, .credit = credit})
      .end.value;
}

// Serial: communication behind all of the backward, the forward behind all communication.
double serial(std::vector<SummedUnit> units) {
  double ready = 0, bytes = 0, forward = 0;
  for (const SummedUnit& unit : units)
    ready = std::max(ready, unit.ready.value), bytes += unit.bytes, forward += unit.forward.value;
  return ready + bytes + forward;
}

TEST(SumOrder, TheHandCaseIsTenNineEight) {
  EXPECT_EQ(serial(two_layers()), 10);
  EXPECT_EQ(end(two_layers(), SumOrder::Ready, 0), 9);
  EXPECT_EQ(end(two_layers(), SumOrder::Ready, 1), 9);
  EXPECT_EQ(end(two_layers(), SumOrder::Priority, 1), 8);
  EXPECT_EQ(end(two_layers(), SumOrder::Priority, 0), 9);  // layer 2 is under way as a whole when layer 1 is ready
  const SumSchedule by_priority = schedule_sums(two_layers(), {.bandwidth = {1}, .order = SumOrder::Priority, .partition = 1});
  std::vector<int> units;
  for (const SentPart& part : by_priority.parts) units.push_back(part.unit);
  EXPECT_EQ(units, (std::vector<int>{1, 0, 0, 1, 1, 1}));
}

// With credit for all six bytes what is ready has left before anything can overtake it.
TEST(SumOrder, CreditGivesPriorityAway) {
  EXPECT_EQ(end(two_layers(), SumOrder::Priority, 1, 0, 6), 9);
  EXPECT_EQ(end(two_layers(), SumOrder::Priority, 1, 0, 2), 8);
  const SumSchedule all =
      schedule_sums(two_layers(), {.bandwidth = {1}, .order = SumOrder::Priority, .partition = 1, .credit = 6});
  EXPECT_EQ(all.parts.front().begin.value, 1);
  EXPECT_EQ(all.parts[3].begin.value, 1);
}

// A latency of 1 is paid for each of six parts of 1, one after the other; with two of them under way that of the second is hidden.
TEST(SumOrder, CreditHidesLatency) {
  const std::vector<SummedUnit> one = {{.ready = {0}, .bytes = 6, .forward = {0}}};
  EXPECT_EQ(end(one, SumOrder::Ready, 0, 1), 7);
  EXPECT_EQ(end(one, SumOrder::Ready, 1, 1), 12);
  EXPECT_EQ(end(one, SumOrder::Ready, 1, 1, 2), 7);
}

std::vector<SummedUnit> random_net(std::mt19937& random) {
  std::uniform_real_distribution<double> uniform(0.1, 3);
  std::vector<SummedUnit> units(2 + random() % 12);
  double ready = 0;
  for (std::size_t u = units.size(); u-- > 0;)  // the backward comes to the last layer first
    units[u] = {.ready = {ready += uniform(random)}, .bytes = uniform(random) * 2, .forward = {uniform(random)}};
  return units;
}

// As parts become small, priority is the best there is: preemptive, earliest due date first (Horn 1974).
TEST(SumOrder, PriorityIsNeverWorseAsPartsBecomeSmall) {
  std::mt19937 random(17);
  int better = 0;
  for (int net = 0; net < 100; ++net) {
    const auto units = random_net(random);
    const double fifo = end(units, SumOrder::Ready, 0), priority = end(units, SumOrder::Priority, 0.02);
    EXPECT_LE(priority, fifo + 0.02) << net;
    EXPECT_LE(fifo, serial(units) + 1e-9) << net;
    better += priority < fifo - 0.02;
  }
  EXPECT_GT(better, 30);
}

// Everything leaves once, in order, one part at a time without credit.
TEST(SumOrder, AllBytesLeaveOnce) {
  std::mt19937 random(23);
  for (int net = 0; net < 100; ++net) {
    const auto units = random_net(random);
    for (const SumOrder order : {SumOrder::Ready, SumOrder::Priority}) {
      std::vector<double> sent(units.size());
      double free = 0;
      for (const SentPart& part :
           schedule_sums(units, {.bandwidth = {2}, .latency = {0.01}, .order = order, .partition = 0.7}).parts) {
        const auto u = static_cast<std::size_t>(part.unit);
        EXPECT_DOUBLE_EQ(part.first, sent[u]);
        EXPECT_GE(part.begin, units[u].ready);
        EXPECT_GE(part.begin.value, free);
        EXPECT_NEAR(part.end.value - part.begin.value, 0.01 + part.bytes / 2, 1e-9);
        sent[u] += part.bytes, free = part.end.value;
      }
      for (std::size_t u = 0; u < units.size(); ++u) EXPECT_DOUBLE_EQ(sent[u], units[u].bytes);
    }
  }
}

// Whole numbers and parts of one: no order of the parts ends sooner. All orders are tried, a part leaves as soon as it and the wire are ready.
double least(const std::vector<SummedUnit>& units) {
  std::vector<int> order;
  for (std::size_t u = 0; u < units.size(); ++u)
    order.insert(order.end(), static_cast<std::size_t>(units[u].bytes), static_cast<int>(u));
  double best = 1e9;
  do {
    std::vector<double> summed;
    for (const SummedUnit& unit : units) summed.push_back(unit.ready.value);
    double free = 0, end = 0;
    for (const int unit : order) {
      const auto u = static_cast<std::size_t>(unit);
      summed[u] = free = std::max(free, units[u].ready.value) + 1;
    }
    for (const SummedUnit& unit : units) end = std::max(end, unit.ready.value);
    for (std::size_t u = 0; u < units.size(); ++u) end = std::max(end, summed[u]) + units[u].forward.value;
    best = std::min(best, end);
  } while (std::ranges::next_permutation(order).found);
  return best;
}

TEST(SumOrder, NoOtherOrderEndsSooner) {
  std::mt19937 random(29);
  for (int net = 0; net < 200; ++net) {
    std::vector<SummedUnit> units(2 + random() % 2);
    double ready = 0;
    for (std::size_t u = units.size(); u-- > 0;)
      units[u] = {.ready = {ready += static_cast<double>(1 + random() % 3)},
                  .bytes = static_cast<double>(1 + random() % 3),
                  .forward = {static_cast<double>(random() % 4)}};
    EXPECT_EQ(end(units, SumOrder::Priority, 1), least(units)) << net;
  }
}

}  // namespace
}  // namespace foreshard::sum_order_test
