// Generated plans: exchanges, collectives and events in one total order, on random streams. They come to an end, their spans
// follow the rules, folding and merging change nothing, and without bytes the times are those of a plain longest path.
#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <random>
#include <tuple>

#include "core/plan/ranks.h"
#include "replay/light_clock.h"
#include "sim/simulate.h"
#include "tests/core/network_clusters.h"
#include "tests/sim/plans.h"

namespace foreshard::random_plan_test {
namespace {

using namespace playing;

struct Times {
  std::int64_t ready = 0, begin = 0, end = 0;
};

// Roles in a row on the axes dp x tp. Every operation is added to all roles that take part before the next one is drawn; its
// times are computed on the way, rank by rank, as if nothing moved any bytes.
class Generator {
 public:
  Generator(unsigned seed, bool with_bytes) : draw_(seed), with_bytes_(with_bytes) {
    roles_ = 1 + below(3);
    dp_ = of_.axis(DenseKind::Data, 1 + below(4));
    tp_ = of_.axis(DenseKind::Tensor, 1 + below(3));
    for (int r = 0; r < roles_; ++r) of_.role("role" + std::to_string(r), {dp_, tp_}, kStreams, kEvents, kSlots);
    groups_ = {of_.group({dp_}), of_.group({tp_}), of_.group({dp_, tp_})};
    std::vector<RoleId> everyone;
    for (int r = 0; r < roles_; ++r) everyone.push_back({r});
    everybody_ = of_.group({dp_, tp_}, everyone);
    open_.resize(static_cast<std::size_t>(roles_));
    const Ranks ranks(of_.plan());
    ranks_ = ranks.count();
    stream_end_.assign(static_cast<std::size_t>(ranks_ * kStreams), 0);
    recorded_.assign(static_cast<std::size_t>(ranks_ * kEvents * kSlots), 0);
    for (int op = 0, ops = 20 + below(60); op < ops; ++op) add(ranks);
    for (int r = 0; r < roles_; ++r) close(r);
  }
  Plan& plan() { return of_.plan(); }
  int ranks() const { return ranks_; }
  std::map<std::tuple<int, int, int>, Times> times = {};  // (rank, action, instruction)

 private:
  static constexpr int kStreams = 3, kEvents = 2, kSlots = 2;

  int below(int n) { return static_cast<int>(draw_() % static_cast<unsigned>(n)); }
  std::int64_t size() { return with_bytes_ ? 1'000'000LL * (1 + below(50)) : 0; }
  double kernels() { return with_bytes_ ? 0.1 * below(5) : 0; }  // of the compute units, while it communicates
  std::int64_t alpha() { return kUs * (1 + below(20)); }

  struct Open {
    std::vector<Item> items = {};
    int action = 0;
  };
  Open& open(int role) { return open_[static_cast<std::size_t>(role)]; }
  void close(int role) {
    if (!open(role).items.empty()) {
      of_.issue({role}, std::exchange(open(role).items, {}));
      ++open(role).action;
    }
  }

  // Appends to a role's program, with random waits, records and joins; returns where.
  std::pair<int, int> append(int role, Item item) {
    if (below(4) == 0) close(role);
    std::vector<Item>& items = open(role).items;
    for (int i = 0; i < static_cast<int>(items.size()); ++i)
      if (below(6) == 0 && items[static_cast<std::size_t>(i)].what.stream != item.what.stream) item.what.after.push_back(i);
    if (below(4) == 0) item.what.waits.push_back({{below(kEvents)}, {below(kSlots)}});
    if (below(4) == 0) item.what.records.push_back({{below(kEvents)}, {below(kSlots)}});
    item.what.layer = {below(2)};
    items.push_back(std::move(item));
    return {open(role).action, static_cast<int>(items.size()) - 1};
  }

  const Instruction& instruction(int role, int i) { return open(role).items[static_cast<std::size_t>(i)].what; }
  std::int64_t& stream_end(int rank, StreamId stream) {
    return stream_end_[static_cast<std::size_t>(rank * kStreams + stream.value)];
  }
  std::int64_t& recorded(int rank, const EventUse& use) {
    return recorded_[static_cast<std::size_t>((rank * kEvents + use.event.value) * kSlots +
                                              std::get<std::int32_t>(use.slot.which))];
  }
  std::int64_t ready(int rank, int role, std::pair<int, int> where) {
    const Instruction& what = instruction(role, where.second);
    std::int64_t at = stream_end(rank, what.stream);
    for (const std::int32_t earlier : what.after) at = std::max(at, times[{rank, where.first, earlier}].end);
    for (const EventUse& wait : what.waits) at = std::max(at, recorded(rank, wait));
    return at;
  }
  void done(int rank, int role, std::pair<int, int> where, Times t) {
    times[{rank, where.first, where.second}] = t;
    stream_end(rank, instruction(role, where.second).stream) = t.end;
    for (const EventUse& record : instruction(role, where.second).records) recorded(rank, record) = t.end;
  }

  void add(const Ranks& ranks) {
    const int kind = below(5), role = below(roles_), stream = below(kStreams);
    const int per_role = ranks_ / roles_, first = role * per_role;
    if (kind == 0 && role + 1 < roles_) return add_transfer(role, per_role);
    if (kind == 1) return add_shift(ranks, role, first, per_role);
    if (kind == 2) return add_collective(ranks, role, first, per_role);
    const std::int64_t busy = kUs * below(100);
    const auto where = append(role, kind == 3 ? compute(stream, busy) : below(2) == 0 ? host(stream, busy) : compute(0, busy));
    for (int rank = first; rank < first + per_role; ++rank) {
      const std::int64_t at = ready(rank, role, where);
      done(rank, role, where, {at, at, at + busy});
    }
  }

  void add_transfer(int role, int per_role) {
    const std::int64_t bytes = size(), setup = alpha();
    const std::string tag(1, static_cast<char>('a' + below(2)));
    const auto from = append(role, send(below(kStreams), {1}, bytes, setup, tag).takes(kernels()));
    const auto to = append(role + 1, receive(below(kStreams), {-1}, bytes, setup, tag));
    for (int rank = role * per_role; rank < (role + 1) * per_role; ++rank) {
      const std::int64_t a = ready(rank, role, from), b = ready(rank + per_role, role + 1, to), at = std::max(a, b);
      done(rank, role, from, {a, at, at + setup});
      done(rank + per_role, role + 1, to, {b, at, at + setup});
    }
  }

  void add_shift(const Ranks& ranks, int role, int first, int per_role) {
    const AxisId axis = below(2) == 0 ? dp_ : tp_;
    const std::int64_t setup = alpha();
    const auto where = append(role, both(below(kStreams), {0, {axis}, 1}, {0, {axis}, -1}, size(), setup, "s"));
    std::map<int, std::int64_t> came;
    for (int rank = first; rank < first + per_role; ++rank) came[rank] = ready(rank, role, where);
    for (int rank = first; rank < first + per_role; ++rank) {
      const std::int64_t at = std::max(
          {came[rank], came[ranks.peer({rank}, {0, {axis}, 1}).value], came[ranks.peer({rank}, {0, {axis}, -1}).value]});
      done(rank, role, where, {came[rank], at, at + setup});
    }
  }

  void add_collective(const Ranks& ranks, int role, int first, int per_role) {
    const bool all = below(4) == 0;
    const GroupId group = all ? everybody_ : groups_[static_cast<std::size_t>(below(3))];
    const auto kind = static_cast<CollectiveKind>(below(3));
    const std::int64_t bytes = size(), setup = alpha();
    std::map<int, std::pair<int, int>> where;
    for (int r = all ? 0 : role; r <= (all ? roles_ - 1 : role); ++r)
      where[r] = append(r, collective(below(kStreams), kind, group, bytes, setup).takes(kernels()));
    if (all) first = 0, per_role = ranks_;
    std::map<int, std::int64_t> came;
    for (int rank = first; rank < first + per_role; ++rank) {
      const int own = ranks.role({rank}).value;
      came[rank] = ready(rank, own, where[own]);
    }
    for (int rank = first; rank < first + per_role; ++rank) {
      std::int64_t at = 0;
      for (const RankId member : ranks.members(group, RankId{rank})) at = std::max(at, came[member.value]);
      const int own = ranks.role({rank}).value;
      done(rank, own, where[own], {came[rank], at, at + setup});
    }
  }

  std::mt19937 draw_;
  bool with_bytes_;
  PlanOf of_ = {};
  int roles_ = 1, ranks_ = 0;
  AxisId dp_ = {}, tp_ = {};
  std::vector<GroupId> groups_ = {};
  GroupId everybody_ = {};
  std::vector<Open> open_ = {};
  std::vector<std::int64_t> stream_end_ = {}, recorded_ = {};
};

Cluster small(int ranks) {
  return lossless_cluster_of(switched_shape({.gpus = 4, .nics = 2, .nvlink = 100e9}), (ranks + 3) / 4,
                             {.nodes_per_leaf = 2, .oversubscription = 3});
}

using Ends = std::map<std::tuple<int, int, int>, std::int64_t>;
Ends ends(const Result& result) {
  Ends all;
  for (const Span& span : result.trace.spans)
    for (const RankId rank : result.trace.classes[span.who.index()].members)
      all[{rank.value, span.action, span.instruction}] = span.end.value;
  return all;
}

TEST(RandomPlan, WithoutBytesTimesAreALongestPath) {
  for (unsigned seed = 1; seed <= 300; ++seed) {
    Generator made(seed, false);
    const Result result = simulate(made.plan(), small(made.ranks()),
                                   {.granularity = Granularity::Op, .folding = seed % 2 == 0 ? Folding::None : Folding::Full});
    std::size_t seen = 0;
    for (const Span& span : result.trace.spans)
      for (const RankId rank : result.trace.classes[span.who.index()].members) {
        const Times& t = made.times.at({rank.value, span.action, span.instruction});
        ASSERT_EQ(std::tuple(span.ready.value, span.begin.value, span.end.value), std::tuple(t.ready, t.begin, t.end))
            << "seed " << seed << " rank " << rank.value << " action " << span.action << " instruction " << span.instruction;
        ++seen;
      }
    ASSERT_EQ(seen, made.times.size());
  }
}

TEST(RandomPlan, FoldingChangesNothing) {
  for (unsigned seed = 1; seed <= 150; ++seed) {
    Generator made(seed, true);
    const auto with = [&](Folding folding) {
      return simulate(made.plan(), small(made.ranks()), {.granularity = Granularity::Op, .folding = folding});
    };
    const Result none = with(Folding::None);
    const Ends expected = ends(none);
    ASSERT_EQ(expected.size(), made.times.size());
    for (const Span& span : none.trace.spans) ASSERT_TRUE(span.ready <= span.begin && span.begin <= span.end) << seed;
    for (const Folding folding : {Folding::Tp, Folding::Full}) {
      const Result folded = with(folding);
      ASSERT_NEAR(folded.makespan_s, none.makespan_s, 1e-12 * none.makespan_s) << "seed " << seed;
      for (const auto& [where, end] : ends(folded)) ASSERT_LE(std::abs(end - expected.at(where)), 1) << "seed " << seed;
    }
  }
}

// The same player on the other clock: the makespan to 1e-9, every span to 1 ns.
TEST(RandomPlan, BothClocksAgree) {
  for (unsigned seed = 1; seed <= 300; ++seed) {
    Generator made(seed, true);
    const Cluster cluster = small(made.ranks());
    const SimulateOptions options{.granularity = seed % 3 == 0 ? Granularity::Stage : Granularity::Op,
                                  .folding = seed % 2 == 0 ? Folding::None : Folding::Full};
    player::LightClock clock;
    const Result light = replay(made.plan(), cluster, clock, options), simgrid = simulate(made.plan(), cluster, options);
    ASSERT_NEAR(light.makespan_s, simgrid.makespan_s, 1e-9 * simgrid.makespan_s) << "seed " << seed;
    ASSERT_EQ(light.trace.spans.size(), simgrid.trace.spans.size());
    for (std::size_t i = 0; i < light.trace.spans.size(); ++i) {
      const Span &a = light.trace.spans[i], &b = simgrid.trace.spans[i];
      ASSERT_LE(std::abs(a.ready.value - b.ready.value), 1) << "seed " << seed << " span " << i;
      ASSERT_LE(std::abs(a.begin.value - b.begin.value), 1) << "seed " << seed << " span " << i;
      ASSERT_LE(std::abs(a.end.value - b.end.value), 1) << "seed " << seed << " span " << i;
    }
    for (std::size_t l = 0; l < light.trace.links.size(); ++l)
      ASSERT_NEAR(light.trace.links[l].bytes, simgrid.trace.links[l].bytes, 1e-9 * simgrid.trace.links[l].bytes)
          << "seed " << seed;
  }
}

// What is left of an instruction after merging ends when it ends alone.
TEST(RandomPlan, MergingComputesChangesNothing) {
  for (unsigned seed = 1; seed <= 150; ++seed) {
    Generator made(seed, true);
    const auto with = [&](Granularity granularity) {
      return simulate(made.plan(), small(made.ranks()), {.granularity = granularity});
    };
    const Result op = with(Granularity::Op), layer = with(Granularity::Layer);
    ASSERT_NEAR(layer.makespan_s, op.makespan_s, 1e-12 * op.makespan_s) << "seed " << seed;
    const Ends expected = ends(op);
    for (const auto& [where, end] : ends(layer)) ASSERT_GE(end + 1, expected.at(where)) << "seed " << seed;
    ASSERT_GT(with(Granularity::Stage).makespan_s, 0) << "seed " << seed;
  }
}

}  // namespace
}  // namespace foreshard::random_plan_test
