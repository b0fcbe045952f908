// Receive rings: numbers by hand, and the law that a schedule with the rings is as fast as one with endless memory.
#include "strategy/schedule/receive_slots.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <map>

#include "strategy/schedule/schedule_read.h"
#include "tests/strategy/support_schedules.h"

namespace foreshard::receive_slots_test {

using Times = ScheduleTimes<std::int64_t>;

TEST(ReceiveSlots, OneFOneB) {  // input: p - s + 1 in flight before it; gradient: one in use, one on its way
  const ReceiveSlots slots = receive_slots(schedule_entry(Schedule::OneFOneB).lists({.p = 4, .m = 8}));
  EXPECT_EQ(slots.input, (std::vector<int>{0, 4, 3, 2}));
  EXPECT_EQ(slots.gradient, (std::vector<int>{2, 2, 2, 0}));
}

TEST(ReceiveSlots, GPipeHoldsEveryInput) {
  const ReceiveSlots slots = receive_slots(schedule_entry(Schedule::GPipe).lists({.p = 3, .m = 5}));
  EXPECT_EQ(slots.input, (std::vector<int>{0, 5, 5}));
  EXPECT_EQ(slots.gradient, (std::vector<int>{2, 2, 0}));
}

TEST(ReceiveSlots, NeverMoreThanTheMicrobatches) {
  const ReceiveSlots slots = receive_slots(schedule_entry(Schedule::OneFOneB).lists({.p = 4, .m = 1}));
  EXPECT_EQ(slots, (ReceiveSlots{{0, 1, 1, 1}, {1, 1, 1, 0}}));
}

// All three forwards of each stage, then the backwards: three inputs are here at once, one gradient more than the one in use
// never is (g = p = 1: 0F0 1F0 2F0 2B0 ...: one of each).
TEST(ReceiveSlots, NeighboursOnOneRankHandOverWhatIsHereAtOnce) {
  const ReceiveSlots gpipe = receive_slots(parse_schedule_text("0F0 0F1 0F2 1F0 1F1 1F2 1B0 1B1 1B2 0B0 0B1 0B2\n"));
  EXPECT_EQ(gpipe, (ReceiveSlots{{0, 3}, {3, 0}}));
  const ReceiveSlots depth = receive_slots(parse_schedule_text("0F0 1F0 1B0 0B0 0F1 1F1 1B1 0B1\n"));
  EXPECT_EQ(depth, (ReceiveSlots{{0, 1}, {1, 0}}));
}

// W gives back what I read: rank 1 of zb-h1 (0-based, p = 4) owes one weight gradient, so a gradient stays for one more I; on the
// last rank of zb-v the two chunks are neighbours.
TEST(ReceiveSlots, SplitBackwards) {
  const ReceiveSlots slots = receive_slots(schedule_entry(Schedule::ZeroBubbleH1).lists({.p = 4, .m = 8}));
  EXPECT_EQ(slots.input, (std::vector<int>{0, 4 + 2, 3 + 3, 2 + 4}));  // in flight before it, and what it puts off
  EXPECT_EQ(slots.gradient.back(), 0);
}

// The longest path with rings: the transfer of micro-batch i also waits until the stage has given back i - slots.
// Repeats until nothing changes; -1 when it grows for ever.
static std::int64_t makespan_with_rings(const ScheduleLists& lists, const Times& times, const ReceiveSlots& slots) {
  const int stages = static_cast<int>(slots.input.size());
  std::map<int, std::size_t> rank_of;
  std::size_t actions = 0;
  int microbatches = 0;
  for (std::size_t rank = 0; rank < lists.size(); ++rank)
    for (const ScheduleOp& op : lists[rank]) {
      rank_of[op.stage] = rank, ++actions;
      microbatches = std::max(microbatches, op.microbatch + 1);
    }
  const std::int64_t bound = static_cast<std::int64_t>(2 * actions) *
                             (3 * times.forward[0] + 3 * times.input_grad[0] + 3 * times.weight_grad[0] + times.latency);
  const auto cells = static_cast<std::size_t>(stages * microbatches);
  std::vector<std::int64_t> forward(cells, 0), backward(cells, 0), released(cells, 0);
  const auto cell = [&](int stage, int i) { return static_cast<std::size_t>(stage * microbatches + i); };
  std::int64_t makespan = 0;
  for (bool changed = true; changed && makespan <= bound;) {
    changed = false;
    for (std::size_t rank = 0; rank < lists.size(); ++rank) {
      std::int64_t now = 0;
      for (const ScheduleOp& op : lists[rank]) {
        const auto s = static_cast<std::size_t>(op.stage);
        const auto arrival = [&](std::int64_t sent, int from, const std::vector<int>& ring) {
          if (rank_of[from] == rank) return sent;
          const int reused = op.microbatch - ring[s];
          if (reused >= 0) sent = std::max(sent, released[cell(op.stage, reused)]);
          return sent + times.latency;
        };
        std::int64_t& end = (op.work == Work::F   ? forward
                             : op.work == Work::W ? released
                                                  : backward)[cell(op.stage, op.microbatch)];
        if (op.work == Work::F) {
          if (op.stage > 0) now = std::max(now, arrival(forward[cell(op.stage - 1, op.microbatch)], op.stage - 1, slots.input));
          now += times.forward[s];
        } else if (op.work == Work::W) {
          now += times.weight_grad[s];
        } else {
          if (op.stage + 1 < stages)
            now = std::max(now, arrival(backward[cell(op.stage + 1, op.microbatch)], op.stage + 1, slots.gradient));
          now += times.input_grad[s] + (op.work == Work::B ? times.weight_grad[s] : 0);
        }
        if (now > end) end = now, changed = true;
        if (op.work == Work::B) released[cell(op.stage, op.microbatch)] = now;
      }
      makespan = std::max(makespan, now);
    }
  }
  return makespan > bound ? -1 : makespan;
}

static bool has_cells(const ScheduleLists& lists) {
  for (const auto& list : lists)
    for (const ScheduleOp& op : list)
      if (op.with_next) return true;
  return false;
}

TEST(ReceiveSlots, RingsNeverSlowEqualStages) {
  for (const ScheduleCase& c : all_schedule_cases()) {
    if (c.shape.g != 0 || c.shape.p == 5 || c.routes() > 1 || has_cells(c.lists)) continue;
    const ReceiveSlots slots = receive_slots(c.lists);
    for (const std::int64_t ratio : {1, 2, 3})           // B / F
      for (const std::int64_t tenths : {0, 1, 5, 10}) {  // c / min(F, B)
        const Times times = equal_times<std::int64_t>(c.stages(), 10, 5 * ratio, 5 * ratio, tenths);
        ASSERT_EQ(makespan_with_rings(c.lists, times, slots), evaluate(c.lists, times)->makespan)
            << c.name() << " B/F " << ratio << " c " << tenths << "/10";
      }
  }
}

// Negative control: one gradient slot less, or one input slot less than 1F1B holds anyway, is slower or stands still.
TEST(ReceiveSlots, OneLessIsSeen) {
  const ScheduleLists lists = schedule_entry(Schedule::OneFOneB).lists({.p = 4, .m = 8});
  const Times times = equal_times<std::int64_t>(4, 10, 10, 10, 10);
  const std::int64_t free = evaluate(lists, times)->makespan;
  ReceiveSlots slots = receive_slots(lists);
  EXPECT_EQ(makespan_with_rings(lists, times, slots), free);
  slots.input[1] -= 2;  // stage 1 has 3 in flight and would hold 2
  EXPECT_EQ(makespan_with_rings(lists, times, slots), -1);
  const ScheduleLists gpipe = schedule_entry(Schedule::GPipe).lists({.p = 4, .m = 8});
  slots = receive_slots(gpipe);
  slots.gradient[1] = 1;
  EXPECT_GT(makespan_with_rings(gpipe, times, slots), evaluate(gpipe, times)->makespan);
}

}  // namespace foreshard::receive_slots_test
