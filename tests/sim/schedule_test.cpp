// The golden schedules played by the simulator: 1 unit = 1 ms, free links, alpha as the transfer latency c. Makespan and idle are
// those of docs/schedules.md, exact to the nanosecond, at every granularity and folding.
#include "strategy/schedule/schedule.h"

#include <gtest/gtest.h>

#include "sim/simulate.h"
#include "tests/core/network_clusters.h"
#include "tests/sim/plans.h"

namespace foreshard::schedule_test {
namespace {

using namespace playing;

struct Times {
  std::int64_t forward = 0, backward = 0, latency = 0;  // nanoseconds, per stage; I and W take half of the backward
};

// One role per pipeline rank. A chunk is a compute; transfers between ranks have no bytes and take `latency`. Streams: 0 compute,
// then one per direction and side, so that nothing but the data waits; on the way back of a V its own.
Plan pipeline(Schedule id, const ScheduleLists& lists, int stages, const Times& times) {
  const int p = static_cast<int>(lists.size());
  PlanOf of;
  const AxisId dp = of.axis(DenseKind::Data, 2);
  for (int rank = 0; rank < p; ++rank) of.role("rank" + std::to_string(rank), {dp}, 9);
  const auto home = [&](int stage) { return rank_of_stage(id, stage, p); };
  for (int rank = 0; rank < p; ++rank)
    for (const ScheduleOp& op : lists[static_cast<std::size_t>(rank)]) {
      const bool forward = op.work == Work::F;
      const int from = op.stage + (forward ? -1 : 1), to = op.stage + (forward ? 1 : -1);
      const int side = (forward ? 1 : 3) + (id == Schedule::ZeroBubbleV && op.stage >= p ? 4 : 0);
      if (op.work == Work::W) {
        of.issue({rank}, {compute(0, times.backward / 2)});
        continue;
      }
      const auto remote = [&](int stage) { return stage >= 0 && stage < stages && home(stage) != rank; };
      const auto tag = [&](int stage) { return (forward ? "F" : "B") + std::to_string(stage); };
      std::vector<Item> items;
      if (remote(from)) items.push_back(receive(side, {home(from) - rank}, 0, times.latency, tag(op.stage)));
      Item cell = compute(0, forward ? times.forward : op.work == Work::I ? times.backward / 2 : times.backward);
      if (remote(from)) cell.what.after = {0};
      items.push_back(std::move(cell));
      const int done = static_cast<int>(items.size()) - 1;
      if (remote(to)) items.push_back(send(side + 1, {home(to) - rank}, 0, times.latency, tag(to)).after({done}));
      of.issue({rank}, std::move(items));
    }
  return of.plan();
}

// Makespan and the idle time of each pipeline rank.
struct Played {
  std::int64_t makespan = 0;
  std::vector<std::int64_t> idle = {};
};
Played play(Schedule id, const ScheduleShape& shape, const Times& times, SimulateOptions options = {}) {
  const ScheduleLists lists = schedule_entry(id).lists(shape);
  const Cluster cluster = lossless_cluster_of(switched_shape({}), (2 * shape.p + 7) / 8);
  const Result result = simulate(pipeline(id, lists, shape.p * shape.v, times), cluster, options);
  Played played{result.trace.makespan.value,
                std::vector<std::int64_t>(static_cast<std::size_t>(shape.p), result.trace.makespan.value)};
  for (const Span& span : result.trace.spans) {
    const RankClass& who = result.trace.classes[span.who.index()];
    const bool first = options.folding == Folding::Full || who.members.front().value % 2 == 0;  // one of the two replicas
    if (first && span.stream.value == 0) played.idle[who.role.index()] -= span.end.value - span.begin.value;
  }
  return played;
}

struct Golden {
  Schedule id;
  int v, p, m;
  double makespan, idle;  // units
};

// docs/schedules.md, F = 1, B = 2: GPipe and 1F1B; interleaved with 2 and 4 chunks (a chunk is 1/v of the work).
const Golden kGolden[] = {
    {Schedule::GPipe, 1, 2, 4, 15, 3},
    {Schedule::GPipe, 1, 3, 6, 24, 6},
    {Schedule::GPipe, 1, 4, 8, 33, 9},
    {Schedule::GPipe, 1, 4, 12, 45, 9},
    {Schedule::GPipe, 1, 8, 16, 69, 21},
    {Schedule::GPipe, 1, 8, 32, 117, 21},
    {Schedule::OneFOneB, 1, 2, 4, 15, 3},
    {Schedule::OneFOneB, 1, 3, 6, 24, 6},
    {Schedule::OneFOneB, 1, 4, 8, 33, 9},
    {Schedule::OneFOneB, 1, 4, 12, 45, 9},
    {Schedule::OneFOneB, 1, 8, 16, 69, 21},
    {Schedule::OneFOneB, 1, 8, 32, 117, 21},
    {Schedule::Interleaved, 2, 2, 4, 13.5, 1.5},
    {Schedule::Interleaved, 2, 3, 6, 21, 3},
    {Schedule::Interleaved, 2, 4, 8, 28.5, 4.5},
    {Schedule::Interleaved, 2, 4, 12, 40.5, 4.5},
    {Schedule::Interleaved, 2, 8, 16, 58.5, 10.5},
    {Schedule::Interleaved, 2, 8, 32, 106.5, 10.5},
    {Schedule::Interleaved, 4, 2, 4, 12.75, 0.75},
    {Schedule::Interleaved, 4, 3, 6, 19.5, 1.5},
    {Schedule::Interleaved, 4, 4, 8, 26.25, 2.25},
    {Schedule::Interleaved, 4, 4, 12, 38.25, 2.25},
    {Schedule::Interleaved, 4, 8, 16, 53.25, 5.25},
    {Schedule::Interleaved, 4, 8, 32, 101.25, 5.25},
    {Schedule::ZeroBubbleH1, 1, 2, 4, 13, 1},
    {Schedule::ZeroBubbleH1, 1, 4, 8, 27, 3},
    {Schedule::ZeroBubbleH1, 1, 8, 32, 103, 7},
    {Schedule::ZeroBubbleH2, 1, 3, 6, 20, 2},
    {Schedule::ZeroBubbleH2, 1, 4, 12, 39, 3},
    {Schedule::ZeroBubbleH2, 1, 8, 16, 55, 7},
    {Schedule::ZeroBubbleV, 2, 2, 4, 12.5, 0.5},
    {Schedule::ZeroBubbleV, 2, 4, 8, 25.5, 1.5},
    {Schedule::ZeroBubbleV, 2, 8, 16, 51.5, 3.5},
};

std::int64_t units(double n) { return std::llround(n * static_cast<double>(kMs)); }

TEST(PlayedSchedule, GoldenTable) {
  for (const Golden& golden : kGolden)
    for (const Granularity granularity : {Granularity::Op, Granularity::Stage})
      for (const Folding folding : {Folding::None, Folding::Full}) {
        const ScheduleShape shape{.p = golden.p, .m = golden.m, .v = golden.v};
        const Played played =
            play(golden.id, shape, {kMs / golden.v, 2 * kMs / golden.v, 0}, {.granularity = granularity, .folding = folding});
        const std::string what = schedule_entry(golden.id).name + " v" + std::to_string(golden.v) + " p" +
                                 std::to_string(golden.p) + " m" + std::to_string(golden.m);
        EXPECT_EQ(played.makespan, units(golden.makespan)) << what;
        for (const std::int64_t idle : played.idle) EXPECT_EQ(idle, units(golden.idle)) << what;
      }
}

// GPipe: (p-1)(F+B+2c). 1F1B: (p-1)(F+B) + 2c [(p-1) + floor((m-1)(p-1)/p)]. Interleaved, p divides m: (p-1)(F+B)/v + 2c(vp-1), c
// at most one chunk of forward. zb-h1: (p-1)(F+I-W+4c), c at most half of a forward.
TEST(PlayedSchedule, LatencyFormulas) {
  for (const int p : {2, 3, 4, 8})
    for (const int m : {p, 2 * p, 3 * p})
      for (const std::int64_t c : {kMs / 10, kMs / 4}) {
        const std::int64_t f = kMs, b = 2 * kMs, fill = (p - 1) * (f + b);
        const auto expect = [&](Schedule id, int v, std::int64_t idle) {
          const Played played = play(id, {.p = p, .m = m, .v = v}, {f / v, b / v, c});
          const std::string what =
              schedule_entry(id).name + " p" + std::to_string(p) + " m" + std::to_string(m) + " v" + std::to_string(v);
          EXPECT_EQ(played.makespan, m * (f + b) + idle) << what;
        };
        expect(Schedule::GPipe, 1, fill + 2 * c * (p - 1));
        expect(Schedule::OneFOneB, 1, fill + 2 * c * ((p - 1) + (m - 1) * (p - 1) / p));
        if (m > p) expect(Schedule::ZeroBubbleH1, 1, (p - 1) * (f + 4 * c));
        for (const int v : {2, 4}) expect(Schedule::Interleaved, v, fill / v + 2 * c * (v * p - 1));
      }
}

}  // namespace
}  // namespace foreshard::schedule_test
