// The rounds of a collective walked by all members in one thread, against sums and copies written out.
#include "exec/communicator/round_walk.h"

#include <gtest/gtest.h>

#include <memory>
#include <random>

#include "core/base/error.h"

namespace foreshard::round_walk_test {
namespace {

using Values = std::vector<float>;

struct Case {
  Collective what = {};
  int members = 2;
  std::int64_t elements = 0;
  Bytes most = {}, own_memory = {RoundWalk::kOwnMemory};
};

std::byte* bytes_of(Values& values) { return reinterpret_cast<std::byte*>(values.data()); }
bool cuts(CollectiveKind kind) { return kind == CollectiveKind::ReduceScatter || kind == CollectiveKind::AllGather; }

// Element i of member m before: small integers, so that every order of a sum gives the same bits.
float before(int member, std::int64_t i) { return static_cast<float>((member + 1) * (i % 17 + 1)); }

// All members in lock step: every round, each arrival reads the pieces as they were at the start of the round.
std::vector<Values> walked(const Case& c) {
  const auto members = static_cast<std::size_t>(c.members);
  const std::int64_t part = c.elements / c.members;
  std::vector<Values> in(members), out(members), own(members);
  std::vector<CollectiveCall> calls;
  std::vector<std::unique_ptr<RoundWalk>> walks;
  for (int m = 0; m < c.members; ++m) {
    Values &from = in[static_cast<std::size_t>(m)], &to = out[static_cast<std::size_t>(m)];
    const bool gathers = c.what.kind == CollectiveKind::AllGather;
    for (std::int64_t i = 0; i < (gathers ? part : c.elements); ++i) from.push_back(before(m, gathers ? m * part + i : i));
    to.assign(static_cast<std::size_t>(c.what.kind == CollectiveKind::ReduceScatter ? part : c.elements), 1000);
    CollectiveCall call{.what = c.what, .members = std::vector<RankId>(members)};
    call.what.bytes = {4 * c.elements};
    call.from = {bytes_of(from), {std::ssize(from) * 4}}, call.to = {bytes_of(to), {std::ssize(to) * 4}};
    calls.push_back(call);
    walks.push_back(std::make_unique<RoundWalk>(call, static_cast<std::size_t>(m), c.most, c.own_memory));
    own[static_cast<std::size_t>(m)].assign(static_cast<std::size_t>(ceil_div(walks.back()->own_memory().value, 4)), -1);
  }
  const auto base = [&](std::size_t m) { return walks[m]->own_memory() > Bytes{} ? bytes_of(own[m]) : bytes_of(out[m]); };
  for (int window = 0; window < walks.front()->windows(); ++window) {
    for (std::size_t m = 0; m < members; ++m) begin_window(*walks[m], calls[m], base(m), window);
    for (int t = 0; t < walks.front()->rounds(); ++t) {
      const std::vector<Values> out_then = out, own_then = own;
      for (std::size_t m = 0; m < members; ++m)
        for (const RoundWalk::Arrival& arrival : walks[m]->round(t).arrivals) {
          std::vector<const std::byte*> sources;
          for (const int sender : arrival.from) {
            const auto s = static_cast<std::size_t>(sender);
            const std::byte* now = walks[s]->piece(base(s), arrival.slice, window);
            const auto* then =
                reinterpret_cast<const std::byte*>(walks[s]->own_memory() > Bytes{} ? own_then[s].data() : out_then[s].data());
            sources.push_back(then + (now - base(s)));
          }
          receive(*walks[m], calls[m], base(m), window, arrival, sources);
        }
    }
    for (std::size_t m = 0; m < members; ++m) end_window(*walks[m], calls[m], base(m), window);
  }
  return out;
}

// What each member has in the end.
std::vector<Values> expected(const Case& c) {
  const std::int64_t part = c.elements / c.members;
  std::vector<Values> all;
  for (int m = 0; m < c.members; ++m) {
    Values to(static_cast<std::size_t>(c.what.kind == CollectiveKind::ReduceScatter ? part : c.elements), 1000);
    for (std::size_t i = 0; i < to.size(); ++i) {
      const std::int64_t at = static_cast<std::int64_t>(i) + (c.what.kind == CollectiveKind::ReduceScatter ? m * part : 0);
      float sum = 0, most = 0;
      for (int other = 0; other < c.members; ++other) sum += before(other, at), most = std::max(most, before(other, at));
      if (c.what.combine == Combine::Mean) sum /= static_cast<float>(c.members);
      if (c.what.combine == Combine::Max) sum = most;
      if (c.what.kind == CollectiveKind::AllGather) to[i] = before(static_cast<int>(at / part), at);
      if (c.what.kind == CollectiveKind::Broadcast) to[i] = before(0, at);
      if (cuts(c.what.kind) ? c.what.kind == CollectiveKind::ReduceScatter : c.what.kind == CollectiveKind::AllReduce)
        to[i] = c.what.accumulate ? 1000 + sum : sum;
      if (c.what.kind == CollectiveKind::Reduce && m == 0) to[i] = sum;
    }
    all.push_back(to);
  }
  return all;
}

}  // namespace

// Three members in a ring, 24 elements in three slices of 8: member 0 sends slices 2, 1 (added), then 0, 2 (copied); core/network/
// collective_rounds.h draws the messages.
TEST(RoundWalk, ARingOfThree) {
  CollectiveCall call{.what = {.bytes = {96}}, .members = std::vector<RankId>(3)};
  const RoundWalk walk(call, 0, {});
  ASSERT_EQ(walk.rounds(), 4);
  EXPECT_EQ(walk.windows(), 1);
  std::vector<int> sent, received;
  for (int t = 0; t < 4; ++t) {
    ASSERT_EQ(walk.round(t).departures.size(), 1U);
    EXPECT_EQ(walk.round(t).departures[0].to, 1);
    EXPECT_EQ(walk.round(t).arrivals[0].adds, t < 2);
    EXPECT_EQ(walk.round(t).arrivals[0].from, t < 2 ? (std::vector<int>{0, 2}) : (std::vector<int>{2}));
    sent.push_back(walk.round(t).departures[0].slice), received.push_back(walk.round(t).arrivals[0].slice);
  }
  EXPECT_EQ(sent, (std::vector<int>{2, 1, 0, 2}));
  EXPECT_EQ(received, (std::vector<int>{1, 0, 2, 1}));
  EXPECT_EQ(walk.count(2, 0), 8);
  EXPECT_EQ(walk.own_memory(), Bytes{});
}

// Every kind and algorithm with rounds, several numbers of members, pieces as small as one vector, own memory of one window.
TEST(RoundWalk, ResultsAreThoseOfTheDefinition) {
  std::mt19937 random(4);
  int done = 0;
  using enum CollectiveKind;
  for (const CollectiveKind kind : {AllReduce, ReduceScatter, AllGather, Broadcast, Reduce})
    for (const Algorithm algorithm : {Algorithm::Ring, Algorithm::Tree, Algorithm::DoubleTree, Algorithm::Hierarchical,
                                      Algorithm::ParameterServer, Algorithm::TwoDimensional, Algorithm::GatherToRoot})
      for (const int members : {2, 3, 4, 6, 9})
        for (const Combine combine : {Combine::Sum, Combine::Mean, Combine::Max}) {
          Case c{.what = {.kind = kind, .algorithm = algorithm, .combine = combine, .servers = members % 2 == 0 ? 2 : 3},
                 .members = members};
          const bool sums = kind == AllReduce || kind == ReduceScatter;
          c.what.accumulate = sums && random() % 2 == 0 && combine != Combine::Max;
          c.elements = members * (1 + static_cast<std::int64_t>(random() % 90));
          if (random() % 2 == 0) c.most = {32 + static_cast<std::int64_t>(random() % 200)};
          if (random() % 2 == 0) c.own_memory = {32 * 4 * members + static_cast<std::int64_t>(random() % 500)};
          const CollectiveCall call{.what = c.what, .members = std::vector<RankId>(static_cast<std::size_t>(members))};
          if (!RoundWalk::wanted(call)) continue;
          ++done;
          EXPECT_EQ(walked(c), expected(c))
              << static_cast<int>(kind) << " by " << static_cast<int>(algorithm) << " of " << members << ", combine "
              << static_cast<int>(combine) << ", elements " << c.elements;
        }
  EXPECT_GT(done, 200);
}

TEST(RoundWalk, WantedWhereOneStepDoesNotDo) {
  const auto wanted = [](CollectiveKind kind, Algorithm algorithm, int members, int servers = 1) {
    return RoundWalk::wanted({.what = {.kind = kind, .algorithm = algorithm, .servers = servers},
                              .members = std::vector<RankId>(static_cast<std::size_t>(members))});
  };
  EXPECT_FALSE(wanted(CollectiveKind::AllReduce, Algorithm::Ring, 1));
  EXPECT_FALSE(wanted(CollectiveKind::AllReduce, Algorithm::Ring, 2));
  EXPECT_TRUE(wanted(CollectiveKind::AllReduce, Algorithm::Ring, 3));
  EXPECT_FALSE(wanted(CollectiveKind::AllToAll, Algorithm::Ring, 8));
  EXPECT_TRUE(wanted(CollectiveKind::AllReduce, Algorithm::ParameterServer, 4, 2));
  EXPECT_FALSE(wanted(CollectiveKind::AllReduce, Algorithm::ParameterServer, 4, 4));
}

TEST(RoundWalk, AlgorithmsThatACommunicatorDoesNotKnow) {
  const CollectiveCall call{.what = {.algorithm = Algorithm::Tree}, .members = std::vector<RankId>(4), .where = "here"};
  const std::vector<Algorithm> rings = {Algorithm::Ring}, both = {Algorithm::Ring, Algorithm::Tree};
  EXPECT_NO_THROW(check_algorithm(call, both, "it"));
  try {
    check_algorithm(call, rings, "it");
    FAIL();
  } catch (const Error& error) {
    EXPECT_STREQ(error.what(), "plan: here: found a collective by tree, expected ring: what it runs");
  }
  EXPECT_NO_THROW(check_host_algorithm(call));
  CollectiveCall sharp = call;
  sharp.what.algorithm = Algorithm::NvlinkSharp;
  EXPECT_THROW(check_host_algorithm(sharp), Error);
}

}  // namespace foreshard::round_walk_test
