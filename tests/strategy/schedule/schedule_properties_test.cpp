// OperatorTraits over the whole schedule table (letters: docs/schedules.md, "OperatorTraits").
#include <gtest/gtest.h>

#include <algorithm>
#include <deque>
#include <map>
#include <random>
#include <set>

#include "strategy/schedule/schedule_read.h"
#include "tests/strategy/support_schedules.h"

namespace foreshard::schedule_properties_test {

using Times = ScheduleTimes<std::int64_t>;

static Times random_times(std::mt19937_64& random, int stages, int routes = 1) {
  const auto draw = [&] { return static_cast<std::int64_t>(1 + random() % 50); };
  Times times = equal_times<std::int64_t>(stages, 0, 0, 0, static_cast<std::int64_t>(random() % 20));
  times.routes = routes;
  for (auto* list : {&times.forward, &times.input_grad, &times.weight_grad})
    for (std::int64_t& t : *list) t = draw();
  return times;
}

// a: every (stage, micro-batch) has one F and one B or I + W, in that order, on one rank.
TEST(ScheduleLaws, EveryActionOnceAndInOrder) {
  for (const ScheduleCase& c : all_schedule_cases()) {
    EXPECT_EQ(incomplete(c.lists), std::nullopt) << c.name();
    std::set<std::pair<int, int>> forwards, gradients, finished;
    for (const auto& list : c.lists)
      for (const ScheduleOp& op : list) {
        const std::pair key = {op.stage, op.microbatch};
        if (op.work == Work::F) {
          ASSERT_TRUE(forwards.insert(key).second) << c.name();
        }
        if (op.work == Work::B || op.work == Work::I) {
          ASSERT_TRUE(forwards.count(key)) << c.name();
          ASSERT_TRUE(gradients.insert(key).second) << c.name();
        }
        if (op.work == Work::W) {
          ASSERT_TRUE(gradients.count(key)) << c.name();
        }
        if (op.work == Work::B || op.work == Work::W) {
          ASSERT_TRUE(finished.insert(key).second) << c.name();
        }
      }
    const auto all = static_cast<std::size_t>(c.stages() * c.shape.m / c.routes());
    ASSERT_EQ(forwards.size(), all);
    ASSERT_EQ(finished.size(), all);
  }
}

// One step of a rank's list after lowering: an action of the schedule, or one end of a transfer.
struct Step {
  char what = 'C';     // C compute, S send, R receive
  ScheduleOp op = {};  // of a transfer: the action whose result travels
  std::size_t peer = 0;
};

// Sends right after the producer, the receive at the same moment in the receiver's list; empty when the lists deadlock.
static std::vector<std::vector<Step>> with_transfers(const ScheduleCase& c) {
  const ScheduleLists& lists = c.lists;
  std::map<int, std::size_t> rank_of;
  for (std::size_t rank = 0; rank < lists.size(); ++rank)
    for (const ScheduleOp& op : lists[rank]) rank_of[op.stage] = rank;
  std::set<std::tuple<std::size_t, bool, int, int>> here;  // (rank, forward?, stage, micro-batch): result present on the rank
  std::vector<std::vector<Step>> steps(lists.size());
  std::vector<std::size_t> next(lists.size(), 0);
  for (bool progress = true; progress;) {
    progress = false;
    for (std::size_t rank = 0; rank < lists.size(); ++rank) {
      if (next[rank] == lists[rank].size()) continue;
      const ScheduleOp& op = lists[rank][next[rank]];
      const auto has = [&](bool forward, int stage) { return here.count({rank, forward, stage, op.microbatch}) > 0; };
      bool ready = true;
      if (op.work == Work::F) ready = c.is_first(op.stage) || has(true, op.stage - 1);
      if (op.work == Work::B || op.work == Work::I)
        ready = has(true, op.stage) && (c.is_last(op.stage) || has(false, op.stage + 1));
      if (op.work == Work::W) ready = has(false, op.stage);
      if (!ready) continue;
      steps[rank].push_back({'C', op, rank});
      ++next[rank], progress = true;
      if (op.work == Work::W) continue;
      const bool forward = op.work == Work::F;
      here.insert({rank, forward, op.stage, op.microbatch});
      const int to = op.stage + (forward ? 1 : -1);
      if (forward ? c.is_last(op.stage) : c.is_first(op.stage)) continue;
      const std::size_t peer = rank_of[to];
      here.insert({peer, forward, op.stage, op.microbatch});
      if (peer == rank) continue;
      steps[rank].push_back({'S', op, peer});
      steps[peer].push_back({'R', op, rank});
    }
  }
  for (std::size_t rank = 0; rank < lists.size(); ++rank)
    if (next[rank] < lists[rank].size()) return {};
  return steps;
}

// b: with transfers in issue order per pair of ranks, and a receive that blocks its rank, everything finishes.
TEST(ScheduleLaws, BlockingTransfersMakeProgress) {
  for (const ScheduleCase& c : all_schedule_cases()) {
    const auto steps = with_transfers(c);
    ASSERT_EQ(steps.size(), c.lists.size()) << c.name();
    std::map<std::pair<std::size_t, std::size_t>, std::deque<ScheduleOp>> wires;  // (from, to): sent and not received
    std::vector<std::size_t> next(steps.size(), 0);
    for (bool progress = true; progress;) {
      progress = false;
      for (std::size_t rank = 0; rank < steps.size(); ++rank)
        for (; next[rank] < steps[rank].size(); ++next[rank], progress = true) {
          const Step& step = steps[rank][next[rank]];
          if (step.what == 'S') wires[{rank, step.peer}].push_back(step.op);
          if (step.what != 'R') continue;
          auto& wire = wires[{step.peer, rank}];
          if (wire.empty()) break;
          ASSERT_EQ(wire.front(), step.op) << c.name();  // both ends post in one order
          wire.pop_front();
        }
    }
    for (std::size_t rank = 0; rank < steps.size(); ++rank) ASSERT_EQ(next[rank], steps[rank].size()) << c.name();
  }
}

// e: not below the work of a rank, not below the way of one micro-batch; and equal to the obvious evaluation.
TEST(ScheduleLaws, MakespanAgainstBoundsAndTheObviousAnswer) {
  std::mt19937_64 random(5);
  for (const ScheduleCase& c : all_schedule_cases()) {
    if (c.shape.p > 4 && c.shape.v > 1 && c.shape.m % 4 != 0) continue;  // the obvious way is slow
    const Times times = random_times(random, c.stages(), c.routes());
    const auto timing = evaluate(c.lists, times);
    ASSERT_TRUE(timing.has_value()) << c.name();
    ASSERT_EQ(timing->makespan, obvious_makespan(c.lists, times)) << c.name();
    std::int64_t way = 0;
    for (int s = 0; s < c.stages() / c.routes(); ++s) {
      const auto at = static_cast<std::size_t>(s);
      way += times.forward[at] + times.input_grad[at];
      if (!c.entry->splits || s == 0) way += times.weight_grad[at];  // apart, they are in nobody's way but the last one
    }
    int hops = 0;
    for (int s = 1; s < c.stages() / c.routes(); ++s)
      hops += c.entry->rank_of_stage(s, c.shape.p) != c.entry->rank_of_stage(s - 1, c.shape.p);
    way += 2 * times.latency * hops;
    ASSERT_GE(timing->makespan, way) << c.name();
    for (const std::int64_t idle : timing->idle) ASSERT_GE(idle, 0) << c.name();
  }
}

// f: longer durations or transfers never shorten the makespan of fixed lists; the double instance agrees with the exact
// one.
TEST(ScheduleLaws, MakespanIsMonotone) {
  std::mt19937_64 random(6);
  for (const ScheduleCase& c : all_schedule_cases()) {
    Times times = random_times(random, c.stages(), c.routes());
    const std::int64_t before = evaluate(c.lists, times)->makespan;
    const auto stage = random() % static_cast<std::size_t>(c.stages());
    switch (random() % 4) {
      case 0: times.forward[stage] += 17; break;
      case 1: times.input_grad[stage] += 17; break;
      case 2: times.weight_grad[stage] += 17; break;
      default: times.latency += 17;
    }
    const std::int64_t after = evaluate(c.lists, times)->makespan;
    ASSERT_GE(after, before) << c.name();
    const auto real = [](const std::vector<std::int64_t>& t) { return std::vector<double>(t.begin(), t.end()); };
    ScheduleTimes<double> same = {real(times.forward), real(times.input_grad), real(times.weight_grad),
                                  static_cast<double>(times.latency)};
    same.routes = times.routes;
    ASSERT_EQ(evaluate(c.lists, same)->makespan, static_cast<double>(after)) << c.name();
  }
}

// Lists of split backwards in a random but possible order, over any placement of the stages: the clever evaluation of
// lists that no generator makes.
static ScheduleLists random_lists(std::mt19937_64& random, int ranks, int stages, int microbatches) {
  std::vector<std::size_t> rank_of;
  for (int s = 0; s < stages; ++s) rank_of.push_back(random() % static_cast<std::size_t>(ranks));
  ScheduleLists lists(static_cast<std::size_t>(ranks));
  std::set<std::tuple<Work, int, int>> done;
  const auto total = static_cast<std::size_t>(3 * stages * microbatches);
  while (done.size() < total) {
    const ScheduleOp op = {std::array{Work::F, Work::I, Work::W}[random() % 3],
                           static_cast<std::int32_t>(random() % static_cast<std::size_t>(stages)),
                           static_cast<std::int32_t>(random() % static_cast<std::size_t>(microbatches))};
    const auto has = [&](Work work, int stage) { return done.count({work, stage, op.microbatch}) > 0; };
    bool ready = !has(op.work, op.stage);
    if (op.work == Work::F) ready &= op.stage == 0 || has(Work::F, op.stage - 1);
    if (op.work == Work::I) ready &= has(Work::F, op.stage) && (op.stage + 1 == stages || has(Work::I, op.stage + 1));
    if (op.work == Work::W) ready &= has(Work::I, op.stage);
    if (!ready) continue;
    done.insert({op.work, op.stage, op.microbatch});
    lists[rank_of[static_cast<std::size_t>(op.stage)]].push_back(op);
  }
  return lists;
}

TEST(ScheduleLaws, RandomListsMatchTheObviousAnswer) {
  std::mt19937_64 random(77);
  int deadlocks = 0;
  for (int k = 0; k < 300; ++k) {
    const int ranks = 1 + static_cast<int>(random() % 4), stages = 1 + static_cast<int>(random() % 6);
    ScheduleLists lists = random_lists(random, ranks, stages, 1 + static_cast<int>(random() % 4));
    if (k % 2 == 1) {  // two actions change places: some of these lists deadlock
      auto& list =
          *std::max_element(lists.begin(), lists.end(), [](const auto& a, const auto& b) { return a.size() < b.size(); });
      std::swap(list[random() % list.size()], list[random() % list.size()]);
    }
    const Times times = random_times(random, stages);
    std::vector<std::string> blocked;
    const auto timing = evaluate(lists, times, &blocked);
    ASSERT_EQ(timing ? timing->makespan : -1, obvious_makespan(lists, times)) << to_text(lists);
    ASSERT_EQ(blocked.empty(), timing.has_value());
    deadlocks += !timing;
  }
  EXPECT_GT(deadlocks, 20);
}

// l: groups outside the rule are refused; the two shapes that are known to deadlock do, when they are forced.
TEST(ScheduleLaws, InterleavedGroupsOutsideTheRule) {
  const ScheduleEntry& entry = schedule_entry(Schedule::Interleaved);
  for (const int p : {2, 3, 4, 5, 8})
    for (int m = 1; m <= 3 * p + 1; ++m)
      for (int g = 1; g <= m + 1; ++g) {
        const bool allowed = p <= g && g <= m && (m % g == 0 || m % g >= p);
        EXPECT_EQ(!entry.refuse({.p = p, .m = m, .v = 2, .g = g}), allowed) << p << " " << m << " " << g;
      }
  for (const ScheduleShape shape : {ScheduleShape{4, 5, 3, 4}, ScheduleShape{8, 10, 2, 8}}) {
    EXPECT_TRUE(entry.refuse(shape).has_value());
    const ScheduleLists forced = entry.lists(shape);
    EXPECT_EQ(incomplete(forced), std::nullopt);
    std::vector<std::string> blocked;
    EXPECT_FALSE(evaluate(forced, equal_times<std::int64_t>(shape.p * shape.v, 1, 1, 1), &blocked).has_value());
    EXPECT_GE(blocked.size(), 2u);  // a circle needs two
    EXPECT_TRUE(with_transfers({&entry, shape, forced}).empty());
  }
}

TEST(ScheduleLaws, ADeadlockNamesTheBlockedActions) {
  // rank 0 wants the gradient of micro-batch 0 before it sends micro-batch 1; rank 1 wants micro-batch 1 first
  const ScheduleLists lists = parse_schedule_text("0F0 0B0 0F1 0B1\n1F1 1F0 1B0 1B1\n");
  std::vector<std::string> blocked;
  EXPECT_FALSE(evaluate(lists, equal_times<std::int64_t>(2, 1, 1, 1), &blocked).has_value());
  EXPECT_EQ(blocked, (std::vector<std::string>{"rank 0 is at 0B0 and waits for 1B0", "rank 1 is at 1F1 and waits for 0F1"}));
}

}  // namespace foreshard::schedule_properties_test
