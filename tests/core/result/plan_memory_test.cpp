// PlanMemory: curves from spans, with and without what was computed ahead.
#include "core/result/plan_memory.h"

#include <gtest/gtest.h>

namespace foreshard::plan_memory_test {
namespace {

constexpr RankId kRank{0};
constexpr StreamId kStream{0};

// One role, one segment: the first mark (10 ns) acquires 40 bytes of activations, the second (30 ns) 60 bytes of transient memory and
// releases both. 100 bytes of parameters are resident.
//
//   0        10                   40
//   | A 40 .......................|
//            | T 60 ..............|
Plan plan() {
  const Block activation{.buffer = {1}}, transient{.buffer = {2}};
  Plan p;
  p.segments = {
      {.name = "s",
       .instructions = {
           {.name = "a", .what = Mark{}, .stream = kStream, .acquires = {activation}},
           {.name = "b", .what = Mark{}, .stream = kStream, .acquires = {transient}, .releases = {activation, transient}}}}};
  p.roles = {{.name = "all",
              .device_kind = "gpu",
              .streams = {{.name = "compute"}},
              .buffers = {{.name = "w", .category = Category::Parameters, .bytes = {100}, .resident = true},
                          {.name = "x", .category = Category::Activations, .bytes = {40}, .offsets = {{100}}},
                          {.name = "t", .category = Category::Transient, .bytes = {60}, .offsets = {{140}}}},
              .actions = {{.segment = {0}}}}};
  p.costs = {{.device_kind = "gpu", .by_segment = {{{.busy = {10}}, {.busy = {30}}}}}};
  return p;
}

// One span of both, twice as long as the isolated 40 ns.
Trace trace() {
  return {.makespan = {80},
          .classes = {{.role = {0}, .members = {kRank}}},
          .spans = {{.who = {0}, .action = 0, .instruction = 0, .count = 2, .stream = kStream, .begin = {0}, .end = {80}}}};
}

Bytes of(const LiveBytes& live, Category category) { return live[static_cast<std::size_t>(category)]; }

}  // namespace

// The second mark begins at 10 * 80 / 40 = 20 ns; then 100 + 40 + 60 bytes are alive, until 80 ns.
TEST(PlanMemory, ACurveByHand) {
  const Plan p = plan();
  const Trace t = trace();
  const MemoryTimeline timeline = PlanMemory(p, t.classes).timeline(t, {});
  ASSERT_EQ(timeline.curves.size(), 1U);
  const MemoryCurve& curve = timeline.curves[0];
  EXPECT_EQ(of(curve.start, Category::Parameters), Bytes{100});
  EXPECT_EQ(sum(curve.start), Bytes{100});
  EXPECT_EQ(curve.peak_time, Nanoseconds{20});
  EXPECT_EQ(sum(curve.peak), Bytes{200});
  EXPECT_EQ(of(curve.peak, Category::Transient), Bytes{60});
  EXPECT_EQ(curve.arena, Bytes{200});
  const std::vector<MemoryEvent> events = {{{0}, Category::Activations, {40}},
                                           {{20}, Category::Transient, {60}},
                                           {{80}, Category::Activations, {-40}},
                                           {{80}, Category::Transient, {-60}}};
  EXPECT_EQ(curve.events, events);
}

TEST(PlanMemory, WhatIsPreparedChangesNothing) {
  const Plan p = plan();
  const Trace t = trace();
  PlanMemory prepared(p, t.classes), fresh(p, t.classes);
  prepared.prepare({0}, {0}, 0, 2);
  prepared.prepare({0}, {0}, 1, 1);  // a span that the trace does not have
  EXPECT_EQ(prepared.timeline(t, {}), fresh.timeline(t, {}));
  EXPECT_EQ(prepared.timeline(t, {}), memory_timeline(p, t));
}

// Peaks only: the same curve without its events. One object serves several traces.
TEST(PlanMemory, EventsCanBeLeftOut) {
  const Plan p = plan();
  Trace t = trace();
  PlanMemory memory(p, t.classes);
  MemoryTimeline whole = memory.timeline(t, {});
  whole.curves[0].events.clear();
  EXPECT_EQ(memory.timeline(t, {.events = false}), whole);
  t.spans[0].end = {40};
  EXPECT_EQ(memory.timeline(t, {.events = false}).curves[0].peak_time, Nanoseconds{10});
}

}  // namespace foreshard::plan_memory_test
