#include "core/result/memory_timeline.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <random>
#include <set>

#include "tests/core/support_plan.h"

namespace foreshard::memory_timeline_test {
namespace {

using Places = std::map<std::tuple<int, int, int>, std::pair<std::int64_t, std::int64_t>>;

// When each instruction of class `who` begins and ends, straight from the definition in memory_timeline.h.
Places places(const Plan& plan, const Trace& trace, int who) {
  Places all;
  const Role& role = plan.roles[trace.classes[static_cast<std::size_t>(who)].role.index()];
  for (const Span& span : trace.spans) {
    if (span.who.value != who) continue;
    const SegmentId segment = role.actions[static_cast<std::size_t>(span.action)].segment;
    const auto& instructions = plan.segments[segment.index()].instructions;
    std::vector<std::pair<int, std::int64_t>> members;  // instruction, isolated time
    for (int i = span.instruction; static_cast<int>(members.size()) < span.count; ++i)
      if (instructions[static_cast<std::size_t>(i)].stream == span.stream)
        members.push_back({i, plan.costs[0].by_segment[segment.index()][static_cast<std::size_t>(i)].busy.value});
    std::int64_t total = 0;
    for (const auto& member : members) total += member.second;
    if (total == 0)
      for (auto& member : members) member.second = 1, ++total;
    std::int64_t before = 0;
    for (const auto& [i, busy] : members) {
      const auto at = [&](std::int64_t t) { return span.begin.value + t * (span.end.value - span.begin.value) / total; };
      all[{span.action, i, 0}] = {at(before), at(before + busy)};
      before += busy;
    }
  }
  return all;
}

struct Slow {
  LiveBytes start = {}, peak = {};
  std::int64_t peak_time = 0;
  LiveBytes end = {};
};

// Lives block by block: (acquired at, released at); the sum is taken anew at every instant.
Slow slow_curve(const Plan& plan, const Trace& trace, int who, Space space) {
  struct Life {
    std::int64_t from = -1, to = INT64_MAX;
    Category category = Category::Transient;
    std::int64_t bytes = 0;
  };
  const Role& role = plan.roles[trace.classes[static_cast<std::size_t>(who)].role.index()];
  const Places when = places(plan, trace, who);
  std::vector<Life> lives;
  std::map<std::pair<int, int>, std::size_t> open;
  for (const Buffer& b : role.buffers)
    if (b.resident && b.space == space)
      lives.push_back({-1, INT64_MAX, b.category, b.bytes.value * static_cast<std::int64_t>(b.offsets.size())});
  for (std::size_t a = 0; a < role.actions.size(); ++a) {
    const Action& action = role.actions[a];
    const Segment& segment = plan.segments[action.segment.index()];
    for (std::size_t i = 0; i < segment.instructions.size(); ++i) {
      const auto [begin, end] = when.at({static_cast<int>(a), static_cast<int>(i), 0});
      const auto slot = [&](const Block& block) {
        if (const auto* n = std::get_if<std::int32_t>(&block.slot.which)) return *n;
        return action.args[std::get<ParamId>(block.slot.which).index()];
      };
      for (const Block& block : segment.instructions[i].acquires) {
        const Buffer& b = role.buffers[block.buffer.index()];
        if (b.space != space) continue;
        open[{block.buffer.value, slot(block)}] = lives.size();
        lives.push_back({begin, INT64_MAX, b.category, b.bytes.value});
      }
      for (const Block& block : segment.instructions[i].releases) {
        const Buffer& b = role.buffers[block.buffer.index()];
        if (b.space != space) continue;
        const std::pair key{block.buffer.value, slot(block)};
        if (!open.count(key)) open[key] = lives.size(), lives.push_back({-1, INT64_MAX, b.category, b.bytes.value});
        lives[open[key]].to = end;
      }
    }
  }
  std::set<std::int64_t> instants = {-1};
  for (const Life& life : lives) instants.insert(life.from), instants.insert(life.to);
  instants.erase(INT64_MAX);
  Slow slow;
  for (const std::int64_t t : instants) {
    LiveBytes live = {};
    for (const Life& life : lives)
      live[static_cast<std::size_t>(life.category)] += {life.bytes * ((t >= life.from ? 1 : 0) - (t >= life.to ? 1 : 0))};
    if (t == -1) slow.start = slow.peak = live;
    if (sum(live) > sum(slow.peak)) slow.peak = live, slow.peak_time = t;
    slow.end = live;
  }
  return slow;
}

// One class per role; spans of random length after each other on every stream, runs merged at random.
Trace random_trace(const Plan& plan, std::mt19937& random, bool isolated) {
  const auto pick = [&](int n) { return static_cast<int>(random() % static_cast<unsigned>(n)); };
  Trace trace;
  for (std::size_t r = 0; r < plan.roles.size(); ++r) {
    trace.classes.push_back({RoleId{static_cast<int>(r)}, {RankId{static_cast<int>(r)}}});
    const Role& role = plan.roles[r];
    for (std::size_t s = 0; s < role.streams.size(); ++s) {
      std::int64_t now = pick(3);
      for (std::size_t a = 0; a < role.actions.size(); ++a) {
        const SegmentId segment = role.actions[a].segment;
        std::vector<int> mine;
        for (std::size_t i = 0; i < plan.segments[segment.index()].instructions.size(); ++i)
          if (plan.segments[segment.index()].instructions[i].stream.index() == s) mine.push_back(static_cast<int>(i));
        for (std::size_t i = 0; i < mine.size();) {
          const int count = 1 + pick(static_cast<int>(mine.size() - i));
          std::int64_t busy = 0;
          for (int k = 0; k < count; ++k)
            busy += plan.costs[0]
                        .by_segment[segment.index()][static_cast<std::size_t>(mine[i + static_cast<std::size_t>(k)])]
                        .busy.value;
          const std::int64_t length = isolated ? busy : pick(4) == 0 ? 0 : pick(60);
          now += pick(3) == 0 ? pick(30) : 0;
          trace.spans.push_back(Span{.who = {static_cast<int>(r)},
                                     .action = static_cast<int>(a),
                                     .instruction = mine[i],
                                     .count = count,
                                     .stream = {static_cast<int>(s)},
                                     .begin = {now},
                                     .end = {now + length}});
          now += length;
          i += static_cast<std::size_t>(count);
        }
      }
    }
  }
  return trace;
}

// Forward segments acquire blocks by slot, backward segments release them; workspaces come and go inside; on any
// stream.
Plan random_memory_plan(std::mt19937& random) {
  const auto pick = [&](int n) { return static_cast<int>(random() % static_cast<unsigned>(n)); };
  Plan plan{.axes = {{.name = "dp"}}};
  Role role{.name = "only", .device_kind = "d"};
  for (int s = 0, n = 1 + pick(4); s < n; ++s) role.streams.push_back({"s", StreamKind::Compute});
  const int saved = 1 + pick(4), spaces = 2 + pick(3);
  for (int b = 0; b < saved + spaces; ++b) {
    Buffer buffer{.category = static_cast<Category>(pick(kCategories)), .bytes = {pick(50)}};
    if (pick(5) == 0) buffer.space = Space::PinnedHost;
    if (b < saved) buffer.offsets = {{0}, {100}, {200}};
    role.buffers.push_back(buffer);
  }
  role.buffers.push_back(Buffer{.bytes = {7}, .offsets = {{0}, {7}}, .resident = true});
  plan.costs = {CostTable{.device_kind = "d"}};
  for (int backward : {0, 1}) {
    Segment segment{.params = {{"slot", ParamKind::Slot}}};
    for (int i = 0, n = 1 + pick(9); i < n; ++i)
      segment.instructions.push_back({.what = Compute{}, .stream = {pick(static_cast<int>(role.streams.size()))}});
    const auto at = [&](int i) -> Instruction& { return segment.instructions[static_cast<std::size_t>(i)]; };
    const int n = static_cast<int>(segment.instructions.size());
    for (int b = 0; b < saved; ++b) (backward ? at(pick(n)).releases : at(pick(n)).acquires).push_back({{b}, {ParamId{0}}});
    for (int b = saved; b < saved + spaces; ++b) {
      const int from = pick(n);
      at(from).acquires.push_back({{b}, {}});
      at(from + pick(n - from)).releases.push_back({{b}, {}});
    }
    plan.segments.push_back(segment);
    auto& costs = plan.costs[0].by_segment.emplace_back();
    const bool none = pick(6) == 0;
    for (int i = 0; i < n; ++i) costs.push_back({.busy = {none || pick(4) == 0 ? 0 : pick(30)}});
  }
  // slot 2 is carried over: released first, acquired again at the end
  role.actions = {{{1}, {2}}, {{0}, {0}}, {{0}, {1}}, {{1}, {0}}, {{0}, {0}}, {{1}, {1}}, {{1}, {0}}, {{0}, {2}}};
  plan.roles = {role};
  return plan;
}

}  // namespace

// Forward 0 to 10 on stream 0, receive 4 to 6 on stream 1; isolated times equal the spans.
TEST(MemoryTimeline, FollowsAForwardAndAReceiveByHand) {
  Plan plan;
  Role role{.device_kind = "d", .streams = {{"compute"}, {"receive"}}};
  role.buffers = {Buffer{.category = Category::Parameters, .bytes = {100}, .resident = true},
                  Buffer{.category = Category::Transient, .bytes = {20}, .offsets = {{100}}},
                  Buffer{.category = Category::Communication, .bytes = {5}, .offsets = {{120}, {125}}}};
  // two instructions of 3 and 7 ns: the workspace lives in the first only
  Instruction first{.what = Compute{}, .stream = {0}, .acquires = {{{1}}}, .releases = {{{1}}}};
  Instruction second{.what = Compute{}, .stream = {0}, .releases = {{{2}, {0}}}};
  Instruction receive{.what = Exchange{}, .stream = {1}, .acquires = {{{2}, {0}}}};
  plan.segments = {Segment{.instructions = {first, receive, second}}};
  role.actions = {{{0}}};
  plan.roles = {role};
  plan.costs = {CostTable{.device_kind = "d", .by_segment = {{{.busy = {3}}, {.busy = {2}}, {.busy = {7}}}}}};
  Trace trace{.classes = {{{0}, {{0}}}}};
  trace.spans = {Span{.who = {0}, .instruction = 0, .count = 2, .stream = {0}, .begin = {0}, .end = {10}},
                 Span{.who = {0}, .instruction = 1, .stream = {1}, .begin = {4}, .end = {6}}};
  const MemoryTimeline timeline = memory_timeline(plan, trace);
  ASSERT_EQ(timeline.curves.size(), 1U);
  const MemoryCurve& curve = timeline.curves[0];
  EXPECT_EQ(curve.events, (std::vector<MemoryEvent>{{{0}, Category::Transient, {20}},
                                                    {{3}, Category::Transient, {-20}},
                                                    {{4}, Category::Communication, {5}},
                                                    {{10}, Category::Communication, {-5}}}));
  EXPECT_EQ(sum(curve.start), Bytes{100});
  EXPECT_EQ(sum(curve.peak), Bytes{120});  // parameters and the workspace
  EXPECT_EQ(curve.peak_time, Nanoseconds{0});
  EXPECT_EQ(curve.arena, Bytes{130});
  // the receive one nanosecond earlier than the workspace dies: 100 + 20 + 5 at 2
  trace.spans[1].begin = {2};
  EXPECT_EQ(sum(memory_timeline(plan, trace).curves[0].peak), Bytes{125});
  EXPECT_EQ(memory_timeline(plan, trace).curves[0].peak_time, Nanoseconds{2});
}

TEST(MemoryTimeline, AgreesWithASumOverLivesAtEveryInstant) {
  std::mt19937 random(11);
  for (int round = 0; round < 1500; ++round) {
    const Plan plan = random_memory_plan(random);
    const Trace trace = random_trace(plan, random, round % 2 == 0);
    const MemoryTimeline full = memory_timeline(plan, trace), fast = memory_timeline(plan, trace, {.events = false});
    ASSERT_EQ(full.curves.size(), fast.curves.size());
    for (std::size_t c = 0; c < full.curves.size(); ++c) {
      const MemoryCurve &curve = full.curves[c], &quick = fast.curves[c];
      const Slow slow = slow_curve(plan, trace, 0, curve.space);
      ASSERT_EQ(curve.start, slow.start) << round;
      ASSERT_EQ(quick.peak, slow.peak) << round;
      ASSERT_EQ(quick.peak_time.value, slow.peak_time) << round;
      ASSERT_EQ(curve.peak, quick.peak);
      LiveBytes live = curve.start, peak = curve.start;
      for (std::size_t e = 0; e < curve.events.size(); ++e) {
        live[static_cast<std::size_t>(curve.events[e].category)] += curve.events[e].bytes;
        const bool settled = e + 1 == curve.events.size() || curve.events[e + 1].when != curve.events[e].when;
        if (settled && sum(live) > sum(peak)) peak = live;
      }
      ASSERT_EQ(peak, curve.peak) << round;
      ASSERT_EQ(live, curve.start) << round;  // every life was closed or carried over
      ASSERT_EQ(live, slow.end) << round;
    }
  }
}

TEST(MemoryTimeline, ASoundPlanEndsAsItStarted) {
  const Plan plan = small_plan();
  std::mt19937 random(3);
  const Trace trace = random_trace(plan, random, true);
  for (const MemoryCurve& curve : memory_timeline(plan, trace).curves) {
    EXPECT_EQ(sum(curve.start), Bytes{3 * 1024});  // weight, gradient, momentum
    LiveBytes live = curve.start;
    for (const MemoryEvent& event : curve.events) live[static_cast<std::size_t>(event.category)] += event.bytes;
    EXPECT_EQ(live, curve.start);
    EXPECT_EQ(curve.arena, Bytes{6656});
  }
}

}  // namespace foreshard::memory_timeline_test
