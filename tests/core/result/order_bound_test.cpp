#include "core/result/order_bound.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <functional>
#include <random>

#include "core/plan/program_order.h"
#include "core/result/memory_timeline.h"
#include "tests/core/support_plan.h"

namespace foreshard::order_bound_test {
namespace {

// The largest live sum over all consistent cuts, by trying every combination of half steps per stream.
std::int64_t over_all_cuts(const Plan& plan) {
  const Role& role = plan.roles[0];
  const ProgramOrder order(plan, find_meeting_points(plan), RoleId{0});
  std::vector<std::vector<int>> steps(role.streams.size());
  for (int s = 0; s < order.count(); ++s) steps[static_cast<std::size_t>(order.clocks().stream(s))].push_back(s);
  std::vector<int> cut(steps.size(), 0);
  std::int64_t best = 0;
  const std::function<void(std::size_t)> choose = [&](std::size_t stream) {
    if (stream < steps.size()) {
      for (cut[stream] = 0; cut[stream] <= 2 * static_cast<int>(steps[stream].size()); ++cut[stream]) choose(stream + 1);
      return;
    }
    std::int64_t live = 0;
    for (std::size_t s = 0; s < steps.size(); ++s)
      for (int k = 0; 2 * k < cut[s]; ++k) {
        const int step = steps[s][static_cast<std::size_t>(k)];
        for (std::size_t t = 0; t < steps.size(); ++t)
          if (2 * order.clocks().ended_before(step)[t] > cut[t] && t != s) return;
        const Instruction& i = plan.segments[0].instructions[static_cast<std::size_t>(order.step(step).instruction)];
        for (const Block& block : i.acquires) live += role.buffers[block.buffer.index()].bytes.value;
        if (2 * k + 1 < cut[s])
          for (const Block& block : i.releases) live -= role.buffers[block.buffer.index()].bytes.value;
      }
    best = std::max(best, live);
  };
  choose(0);
  return best;
}

// One segment; blocks acquired by one instruction and released by a later one that waits for it, on any stream.
Plan random_lives(std::mt19937& random, int streams) {
  const auto pick = [&](int n) { return static_cast<int>(random() % static_cast<unsigned>(n)); };
  Plan plan;
  Role role;
  for (int s = 0; s < streams; ++s) role.streams.push_back({"s"});
  Segment segment;
  const int n = 2 + pick(streams == 3 ? 4 : 6);
  for (int i = 0; i < n; ++i) {
    Instruction instruction{.what = Mark{}, .stream = {pick(streams)}};
    if (i > 0 && pick(3) == 0) instruction.after = {pick(i)};
    segment.instructions.push_back(instruction);
  }
  for (int b = 0; b < 4; ++b) {
    role.buffers.push_back(Buffer{.bytes = {1 + pick(20)}});
    const int from = pick(n), to = from + pick(n - from);
    segment.instructions[static_cast<std::size_t>(from)].acquires.push_back({{b}});
    segment.instructions[static_cast<std::size_t>(to)].releases.push_back({{b}});
    if (to > from) segment.instructions[static_cast<std::size_t>(to)].after.push_back(from);
  }
  role.actions = {{{0}}};
  plan.segments = {segment};
  plan.roles = {role};
  return plan;
}

// The same instructions in the same order, some in a second action.
Plan in_two_actions(Plan plan, std::mt19937& random) {
  std::vector<Instruction>& first = plan.segments[0].instructions;
  const auto cut = first.begin() + static_cast<std::ptrdiff_t>(random() % first.size());
  Segment second{.instructions = {cut, first.end()}};
  first.erase(cut, first.end());
  plan.segments.push_back(std::move(second));
  plan.roles[0].actions = {{{0}}, {{1}}};
  return plan;
}

}  // namespace

TEST(OrderBound, OneStreamIsTheRunningSum) {
  // acquire 5, acquire 7, release 5, acquire 4: at most 12, then 11
  Plan plan;
  plan.roles = {Role{
      .streams = {{"s"}}, .buffers = {Buffer{.bytes = {5}}, Buffer{.bytes = {7}}, Buffer{.bytes = {4}}}, .actions = {{{0}}}}};
  const auto at = [](std::vector<Block> acquires, std::vector<Block> releases) {
    return Instruction{.what = Mark{}, .stream = {0}, .acquires = std::move(acquires), .releases = std::move(releases)};
  };
  plan.segments = {Segment{.instructions = {at({{{0}}}, {}), at({{{1}}}, {{{0}}}), at({{{2}}}, {{{1}}, {{2}}})}}};
  EXPECT_EQ(order_bound(plan, RoleId{0}), Bytes{12});
  // with the release of the first block on a second stream, which nothing waits for, all three can meet: 16
  plan.roles[0].streams.push_back({"t"});
  plan.segments[0].instructions[1].releases.clear();
  plan.segments[0].instructions.push_back({.what = Mark{}, .stream = {1}, .after = {1}, .releases = {{{0}}}});
  EXPECT_EQ(order_bound(plan, RoleId{0}), Bytes{16});
}

TEST(OrderBound, ExactForTwoStreamsAndNeverTooLowForThree) {
  std::mt19937 random(5);
  int equal = 0, rounds = 300;
  for (int round = 0; round < rounds; ++round) {
    const Plan two = random_lives(random, 1 + round % 2);
    ASSERT_EQ(order_bound(two, RoleId{0}).value, over_all_cuts(two)) << round;
    const Plan three = random_lives(random, 3);
    const std::int64_t exact = over_all_cuts(three), bound = order_bound(three, RoleId{0}).value;
    ASSERT_GE(bound, exact) << round;
    equal += bound == exact ? 1 : 0;
  }
  EXPECT_GT(equal, rounds * 9 / 10);
}

// The running sum of acquired less released bytes, one instruction after the other.
TEST(OrderBound, IssueOrderIsOneOfTheExecutions) {
  std::mt19937 random(6);
  int below = 0;
  for (int round = 0; round < 300; ++round) {
    const Plan plan = random_lives(random, 1 + round % 3);
    std::int64_t live = 0, peak = 0;
    const auto bytes = [&](const Block& block) { return plan.roles[0].buffers[block.buffer.index()].bytes.value; };
    for (const Instruction& instruction : plan.segments[0].instructions) {
      for (const Block& block : instruction.acquires) live += bytes(block);
      peak = std::max(peak, live);
      for (const Block& block : instruction.releases) live -= bytes(block);
    }
    ASSERT_EQ(issue_order_peak(plan, RoleId{0}).value, peak) << round;
    ASSERT_EQ(issue_order_peak(in_two_actions(plan, random), RoleId{0}).value, peak) << round;
    ASSERT_LE(issue_order_peak(plan, RoleId{0}), order_bound(plan, RoleId{0})) << round;
    if (round % 3 == 0) {  // one stream
      ASSERT_EQ(issue_order_peak(plan, RoleId{0}), order_bound(plan, RoleId{0})) << round;
    }
    below += issue_order_peak(plan, RoleId{0}) < order_bound(plan, RoleId{0}) ? 1 : 0;
  }
  EXPECT_GT(below, 20);
  const Plan plan = small_plan();  // actions, slots, resident blocks and blocks that are carried over
  for (const int role : {0, 1}) EXPECT_LE(issue_order_peak(plan, RoleId{role}), order_bound(plan, RoleId{role}));
}

// live peak <= order bound <= arena, for any durations.
TEST(OrderBound, StandsBetweenEveryLivePeakAndTheArena) {
  const Plan plan = small_plan();
  std::mt19937 random(9);
  for (int role : {0, 1}) {
    const Bytes bound = order_bound(plan, RoleId{role});
    EXPECT_LE(bound, arena_bytes(plan.roles[static_cast<std::size_t>(role)], Space::Device));
    const ProgramOrder order(plan, find_meeting_points(plan), RoleId{role});
    Bytes highest;
    for (int round = 0; round < 200; ++round) {
      Trace trace{.classes = {{{role}, {{role}}}}};
      std::vector<std::vector<std::int64_t>> ends(4);
      for (int s = 0; s < order.count(); ++s) {
        std::int64_t begin = 0;
        for (std::size_t t = 0; t < 4; ++t)
          if (const auto needed = static_cast<std::size_t>(order.clocks().ended_before(s)[t]); needed > 0)
            begin = std::max(begin, ends[t][needed - 1]);
        const ProgramStep& step = order.step(s);
        const std::int64_t end = begin + static_cast<std::int64_t>(random() % 100);
        ends[static_cast<std::size_t>(order.clocks().stream(s))].push_back(end);
        trace.spans.push_back(Span{.who = {0},
                                   .action = step.action,
                                   .instruction = step.instruction,
                                   .stream = {order.clocks().stream(s)},
                                   .begin = {begin},
                                   .end = {end}});
      }
      std::stable_sort(trace.spans.begin(), trace.spans.end(),
                       [](const Span& a, const Span& b) { return a.stream < b.stream; });
      const Bytes live = sum(memory_timeline(plan, trace, {.events = false}).curves[0].peak);
      EXPECT_LE(live, bound);
      highest = std::max(highest, live);
    }
    EXPECT_EQ(highest, bound);  // some timing reaches it
  }
}

}  // namespace foreshard::order_bound_test
