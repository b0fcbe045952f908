#include "strategy/lower/memory_planner.h"

#include <algorithm>
#include <map>

#include "core/check/check_plan.h"
#include "core/cluster_file/cluster_file.h"
#include "core/plan/equal_roles.h"
#include "core/result/order_bound.h"
#include "replay/light_clock.h"
#include "replay/replay.h"
#include "tests/how_many.h"
#include "tests/strategy/support_random_strategy.h"

namespace foreshard::memory_planner_test {
namespace {

Instruction acquire(int buffer) { return {.what = Mark{}, .stream = {0}, .acquires = {{.buffer = {buffer}}}}; }
Instruction release(int buffer) { return {.what = Mark{}, .stream = {0}, .releases = {{.buffer = {buffer}}}}; }

// A segment per entry, each an action.
Plan plan_of(const std::vector<std::vector<Instruction>>& segments, const std::vector<std::int64_t>& bytes) {
  Plan plan{.roles = {{.name = "stage 0", .streams = {{.name = "compute"}}}}};
  for (const std::int64_t size : bytes) plan.roles[0].buffers.push_back({.bytes = {size}, .offsets = {Bytes{}}});
  for (const std::vector<Instruction>& instructions : segments) {
    plan.roles[0].actions.push_back(
        {.segment = {static_cast<std::int32_t>(plan.segments.size())}, .does = {{.work = Work::W}}});
    plan.segments.push_back({.instructions = instructions});
  }
  return plan;
}

std::vector<std::int64_t> offsets_of(const Plan& plan) {
  std::vector<std::int64_t> offsets;
  for (const Buffer& buffer : plan.roles[0].buffers) offsets.push_back(buffer.offsets.front().value);
  return offsets;
}

// action   0    1    2    3
//  a 512   [====)                 alive in 0 and 1
//  b 256             [====)       alive in 2 and 3: in the place of a
//  c 256        [====)            alive in 1 and 2: beside both
TEST(MemoryPlanner, RingsThatAreFullAtOtherTimesShareBytes) {
  Plan plan = plan_of({{acquire(0)}, {acquire(2), release(0)}, {acquire(1), release(2)}, {release(1)}}, {512, 256, 256});
  plan_memory(plan);
  EXPECT_EQ(offsets_of(plan), (std::vector<std::int64_t>{0, 0, 512}));
}

// As before, but a is alive again in the last action: nothing can be shared, and all is as it was, slot by slot.
TEST(MemoryPlanner, RingsThatAreFullAtOneTimeHaveBytesOfTheirOwn) {
  Plan plan = plan_of({{acquire(0)}, {acquire(2), release(0)}, {acquire(1), release(2)}, {release(1), acquire(0), release(0)}},
                      {512, 256, 256});
  plan_memory(plan);
  EXPECT_EQ(offsets_of(plan), (std::vector<std::int64_t>{0, 512, 768}));
}

// Two micro-batches, each in a slot of its own: a is alive from F to I, b from I to W, c from F to W. In I, b appears after a has been
// released, so in a slot it lies in the place of a: 2 (512 + 256) bytes instead of 2 (512 + 512 + 256).
//
//   action    F0 F1 I0 I1 W0 W1
//   slot 0    a-----b------
//   slot 1       a-----b------
TEST(MemoryPlanner, WhatFollowsInASlotTakesThePlaceOfWhatWasThere) {
  const auto at = [](std::vector<Block> acquires, std::vector<Block> releases) {
    return Instruction{.what = Mark{}, .stream = {0}, .acquires = std::move(acquires), .releases = std::move(releases)};
  };
  const Slot slot{ParamId{0}};
  const Block a{{0}, slot}, b{{1}, slot}, c{{2}, slot};
  Plan plan = plan_of({{at({a, c}, {})}, {at({}, {a}), at({b}, {})}, {at({}, {b, c})}}, {512, 512, 256});
  Role& role = plan.roles[0];
  for (Buffer& buffer : role.buffers) buffer.offsets.resize(2);
  role.actions.clear();
  for (const int segment : {0, 1, 2})
    for (const int microbatch : {0, 1})
      role.actions.push_back({.segment = {segment}, .args = {microbatch}, .does = {{.work = Work::W}}});
  plan_memory(plan);
  EXPECT_EQ(arena_bytes(role, Space::Device), Bytes{2 * (512 + 256)});
  EXPECT_EQ(role.buffers[0].offsets, role.buffers[1].offsets);
}

// Scratch of one action, in units of 256 bytes. First fit by size: c at 0, b at 0, d at 4, and no gap for a below 7.
//
//   instruction  0 1 2 3 4
//   a 2              [===)       9 |     a a a           8 |   d d d
//   b 3              [===)         |   d d a                   |   d d d
//   c 4          [=)               | c d d d                   | c c b b b
//   d 3            [===)           | c c b b b                 | c c a a a
TEST(MemoryPlanner, ScratchIsPackedWhereFirstFitIsAboveTheBound) {
  const auto at = [](std::vector<Block> acquires, std::vector<Block> releases) {
    return Instruction{.what = Mark{}, .stream = {0}, .acquires = std::move(acquires), .releases = std::move(releases)};
  };
  const Block a{.buffer = {0}}, b{.buffer = {1}}, c{.buffer = {2}}, d{.buffer = {3}};
  Plan plan = plan_of({{at({c}, {}), at({d}, {c}), at({a, b}, {}), at({}, {d}), at({}, {a, b})}}, {512, 768, 1024, 768});
  plan_memory(plan);
  EXPECT_EQ(arena_bytes(plan.roles[0], Space::Device), Bytes{8 * 256});
}

// In units of 256 bytes; a, b and e are alive together: 7.
//
//   instruction  0 1 2 3 4
//   a 2          [=====)
//   b 2            [=====)
//   c 1          [===)
//   d 3          [=)
//   e 3              [=====)
TEST(MemoryPlanner, TheSearchMeetsTheBoundWhereTheRulesDoNot) {
  const auto at = [](std::vector<Block> acquires, std::vector<Block> releases) {
    return Instruction{.what = Mark{}, .stream = {0}, .acquires = std::move(acquires), .releases = std::move(releases)};
  };
  const Block a{.buffer = {0}}, b{.buffer = {1}}, c{.buffer = {2}}, d{.buffer = {3}}, e{.buffer = {4}};
  Plan plan = plan_of({{at({a, c, d}, {d}), at({b}, {c}), at({e}, {a}), at({}, {b}), at({}, {e})}}, {512, 512, 256, 768, 768});
  plan_memory(plan);
  EXPECT_EQ(arena_bytes(plan.roles[0], Space::Device), Bytes{8 * 256});
  plan_memory(plan, {.search_nodes = 1000});
  EXPECT_EQ(arena_bytes(plan.roles[0], Space::Device), Bytes{7 * 256});
}

// A transfer stream brings b beside compute, which waits for it. Compute has released a when the transfer begins, so b lies in its place; c,
// which compute acquires before the transfer has ended, does not.
//
//   compute    | a | release a, record e | c | wait f, release b, c |
//   transfers           | wait e: b, record f |
TEST(MemoryPlanner, WhatAnotherStreamBringsSharesBytesByTheOrderOfTheRun) {
  const auto plan_with = [](bool waits) {
    Plan plan = plan_of({{}}, {4 << 20, 4 << 20, 256});
    Role& role = plan.roles[0];
    role.streams.push_back({.name = "in", .kind = StreamKind::CopyIn});
    role.events = {{.name = "e"}, {.name = "f"}};
    const EventUse e{{0}, {0}}, f{{1}, {0}};
    Instruction free = release(0), bring = acquire(1), use = release(1);
    free.records = {e};
    bring.stream = {1}, bring.records = {f};
    if (waits) bring.waits = {e};
    use.waits = {f}, use.releases.push_back({.buffer = {2}});
    plan.segments[0].instructions = {acquire(0), free, bring, acquire(2), use};
    plan_memory(plan, {.by_order = true});
    return plan;
  };
  EXPECT_EQ(offsets_of(plan_with(true)), (std::vector<std::int64_t>{0, 0, 4 << 20}));
  const std::vector<std::int64_t> apart = offsets_of(plan_with(false));
  EXPECT_GE(std::abs(apart[0] - apart[1]), 4 << 20);
}

// ---- laws -------------------------------------------------------------------------------------------------------------------

// Bytes that are taken, by their first one.
class Taken {
 public:
  // False when some are taken.
  bool take(std::int64_t from, std::int64_t to) {
    const auto next = ranges_.lower_bound(from);
    if (next != ranges_.end() && next->first < to) return false;
    if (next != ranges_.begin() && std::prev(next)->second > from) return false;
    return ranges_.emplace(from, to).second;
  }
  void give_back(std::int64_t from) { ranges_.erase(from); }

 private:
  std::map<std::int64_t, std::int64_t> ranges_ = {};
};

struct Life {
  Nanoseconds begin = {}, end = {};
  std::int64_t from = 0, to = 0;
};

// When the blocks of a class of ranks were alive in a run that was played, and where.
std::vector<Life> lives_of(const Plan& plan, const Role& role, const std::vector<const Span*>& spans, Space space) {
  constexpr Nanoseconds kBefore{-1}, kAfter{std::numeric_limits<std::int64_t>::max()};
  struct Edge {
    Nanoseconds time = {};
    bool begins = false;
  };
  std::map<std::pair<std::int32_t, std::int32_t>, std::vector<Edge>> edges;  // of a block
  for (const Span* span : spans) {
    const Action& action = role.actions[static_cast<std::size_t>(span->action)];
    const Instruction& instruction =
        plan.segments[action.segment.index()].instructions[static_cast<std::size_t>(span->instruction)];
    for (const Block& b : instruction.acquires)
      edges[{b.buffer.value, value_of(b.slot, action)}].push_back({span->begin, true});
    for (const Block& b : instruction.releases) edges[{b.buffer.value, value_of(b.slot, action)}].push_back({span->end, false});
  }
  std::vector<Life> lives;
  for (std::int32_t b = 0; b < static_cast<std::int32_t>(role.buffers.size()); ++b) {
    const Buffer& buffer = role.buffers[static_cast<std::size_t>(b)];
    if (buffer.space != space) continue;
    for (std::int32_t slot = 0; slot < static_cast<std::int32_t>(buffer.offsets.size()); ++slot) {
      const std::int64_t from = buffer.offsets[static_cast<std::size_t>(slot)].value, to = from + buffer.bytes.value;
      if (buffer.resident) lives.push_back({kBefore, kAfter, from, to});
      std::vector<Edge>& of = edges[{b, slot}];
      std::ranges::stable_sort(of, {}, &Edge::time);
      for (std::size_t e = 0; e < of.size(); ++e) {
        if (!of[e].begins && e == 0) lives.push_back({kBefore, of[e].time, from, to});
        if (of[e].begins) lives.push_back({of[e].time, e + 1 < of.size() ? of[e + 1].time : kAfter, from, to});
      }
    }
  }
  return lives;
}

bool overlap(std::vector<Life> lives) {
  std::erase_if(lives, [](const Life& life) { return life.begin == life.end || life.from == life.to; });
  std::vector<std::pair<Nanoseconds, const Life*>> ends, begins;
  for (const Life& life : lives) begins.emplace_back(life.begin, &life), ends.emplace_back(life.end, &life);
  std::ranges::sort(begins, {}, [](const auto& b) { return b.first; });
  std::ranges::sort(ends, {}, [](const auto& e) { return e.first; });
  Taken taken;
  std::size_t ended = 0;
  for (const auto& [time, life] : begins) {
    for (; ended < ends.size() && ends[ended].first <= time; ++ended) taken.give_back(ends[ended].second->from);
    if (!taken.take(life->from, life->to)) return true;
  }
  return false;
}

Strategy drawn(RandomChoice& random, int round) {
  Strategy strategy = random_strategy(random);
  if (round % 3 != 0) return strategy;
  strategy.pp = 2 << (round % 2);
  strategy.virtual_stages = round % 2 == 0 ? 2 : 1;
  strategy.pipeline.schedule = round % 2 == 0 ? Schedule::ZeroBubbleV : Schedule::ZeroBubbleH1;
  strategy.batch.global = strategy.batch.micro * strategy.dp * strategy.pp * random(1, 3);
  strategy.recompute = {};
  return strategy;
}

// DualPipe has every pair of stages on two ranks, of which one is packed. With an event that nobody records, ranks 2 and 3 differ from ranks 1
// and 0, so each rank is packed by itself: to the same slots and offsets.
TEST(MemoryPlanner, RolesWithTheSameMemoryArePackedOnce) {
  for (const bool redone : {false, true}) {
    const Strategy s{.dp = 2,
                     .pp = 4,
                     .pipeline = {.schedule = Schedule::DualPipe},
                     .batch = {.micro = 1, .global = 48},
                     .recompute = {.kind = redone ? RecomputeKind::Full : RecomputeKind::None}};
    const auto answer =
        tuned_plan(load_model("gpt2-355m"), load_cluster("dgx-a100"), s, {.ignore_memory = true, .pack_by_order = false});
    Plan once = std::get<Lowered>(answer).plan, each = once;
    ASSERT_EQ(first_equal_roles(once), (std::vector<std::size_t>{0, 1, 1, 0}));
    for (const std::size_t r : {2, 3}) each.roles[r].events.push_back({.name = "nobody's"});
    ASSERT_EQ(first_equal_roles(each), (std::vector<std::size_t>{0, 1, 2, 3}));
    const Plan before = once;
    for (Plan* plan : {&once, &each}) plan_memory(*plan, {.by_order = true, .own_slots = true});
    for (const std::size_t r : {2, 3}) each.roles[r].events.pop_back();
    EXPECT_EQ(once, each);
    EXPECT_NE(once, before);
    EXPECT_TRUE(check_plan(once).empty());
    EXPECT_EQ(order_bounds(once)[0], order_bounds(once)[3]);
  }
}

// The scratch of roles that run the same segments is packed once, but only where their blocks are equally large.
TEST(MemoryPlanner, RolesWithLargerBlocksHaveOffsetsOfTheirOwn) {
  Plan plan = plan_of({{acquire(0), acquire(1), release(0), release(1)}}, {256, 256});
  for (int role = 1; role < 3; ++role) plan.roles.push_back(plan.roles[0]);
  for (Buffer& buffer : plan.roles[1].buffers) buffer.bytes = {512};
  plan_memory(plan);
  for (const auto& [role, second] : {std::pair{0, 256}, {1, 512}, {2, 256}}) {
    const std::vector<Buffer>& buffers = plan.roles[static_cast<std::size_t>(role)].buffers;
    EXPECT_EQ(buffers[0].offsets[0], Bytes{0}) << role;
    EXPECT_EQ(buffers[1].offsets[0], Bytes{second}) << role;
  }
}

// Time x address, of plans as they were played, not as their order allows: shares nothing with check_plan's rule.
TEST(MemoryPlanner, NoTwoBlocksOverlapInTimeAndAddressInAThousandPlans) {
  RandomChoice random(31);
  const Cluster cluster = load_cluster("dgx-a100-x16");
  int plans = 0, split = 0;
  const int wanted = how_many(100, 1000);
  for (int round = 0; plans < wanted && round < 4 * wanted; ++round) {
    const Model model = random_model(random);
    const Strategy strategy = drawn(random, round);
    const auto answer = tuned_plan(model, cluster, strategy, {.ignore_memory = true, .check = false});
    if (!std::holds_alternative<Lowered>(answer)) continue;
    ++plans;
    split += round % 3 == 0 ? 1 : 0;
    const Plan& plan = std::get<Lowered>(answer).plan;
    player::LightClock clock;
    const Result result = replay(plan, cluster, clock, {.granularity = Granularity::Op, .memory = false});
    std::vector<std::vector<const Span*>> spans(result.trace.classes.size());
    for (const Span& span : result.trace.spans) spans[span.who.index()].push_back(&span);
    for (std::size_t c = 0; c < spans.size(); ++c) {
      const RoleId id = result.trace.classes[c].role;
      const Role& role = plan.roles[id.index()];
      ASSERT_LE(issue_order_peak(plan, id), arena_bytes(role, Space::Device)) << role.name;  // never_fits relies on it
      for (const Space space : {Space::Device, Space::PinnedHost})
        ASSERT_FALSE(overlap(lives_of(plan, role, spans[c], space))) << role.name << "\n" << to_json(strategy);
    }
  }
  EXPECT_EQ(plans, wanted);
  EXPECT_GT(split, wanted / 10);
}

// The search never needs more than the rules, and for one of these budgets less, of scratch and of what a schedule of recomputation keeps.
TEST(MemoryPlanner, ExactPackingIsSmallerWhereTheRulesLeaveAGap) {
  int smaller = 0;
  for (const std::int64_t mebibytes : {512, 768, 1024, 1280, 1536, 2048}) {
    Strategy strategy{
        .dp = 2, .batch = {.global = 6}, .recompute = {.kind = RecomputeKind::Rotor, .budget = {mebibytes << 20}}};
    strategy.attention = AttentionKernel::Unfused;
    const Lowered fast = lowered("megatron-1.7b", "dgx-a100", strategy);
    strategy.device_memory.exact_packing = true;
    const Lowered exact = lowered("megatron-1.7b", "dgx-a100", strategy);
    const Bytes found = arena_bytes(exact.plan.roles[0], Space::Device),
                by_rules = arena_bytes(fast.plan.roles[0], Space::Device);
    EXPECT_LE(found, by_rules) << mebibytes;
    smaller += found < by_rules ? 1 : 0;
    EXPECT_TRUE(check_plan(exact.plan).empty());
  }
  EXPECT_GT(smaller, 0);
}

}  // namespace
}  // namespace foreshard::memory_planner_test
