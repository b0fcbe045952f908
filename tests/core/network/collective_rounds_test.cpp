// Algorithms of collectives as messages: played on paper, and counted against the volumes that the network charges.
#include "core/network/collective_rounds.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <set>

#include "core/network/algorithms.h"
#include "core/network/network.h"

namespace foreshard::collective_rounds_test {
namespace {

using enum Algorithm;
using K = CollectiveKind;

const std::vector<Algorithm> kAll = [] {
  std::vector<Algorithm> all;
  for (const AlgorithmEntry& entry : algorithm_table())
    if (entry.rounds) all.push_back(entry.algorithm);
  return all;
}();

std::vector<Collective> cases(int members) {
  std::vector<Collective> all;
  for (const Algorithm algorithm : kAll)
    for (const K kind : {K::AllReduce, K::ReduceScatter, K::AllGather, K::Broadcast, K::Reduce})
      for (const int servers : {1, 2, 4, members})
        if (const Collective what{.kind = kind, .algorithm = algorithm, .servers = servers};
            algorithm_applies(what, members) && (servers == 1 || (algorithm != Ring && algorithm != TwoDimensional)))
          all.push_back(what);
  all.push_back({.algorithm = ParameterServer, .servers = 1, .served_by = {members - 1}});
  all.push_back({.algorithm = ParameterServer, .servers = 2, .served_by = {members - 1, 0}});
  return all;
}

std::string said(const Collective& what, int members) {
  return "algorithm " + std::to_string(static_cast<int>(what.algorithm)) + " kind " +
         std::to_string(static_cast<int>(what.kind)) + " servers " + std::to_string(what.servers) + " members " +
         std::to_string(members);
}

// What each member has of each slice: how often the contribution of every member is in it.
using Held = std::vector<std::vector<std::vector<int>>>;  // [member][slice][contributor]

Held begun(const Collective& what, int members, int slices) {
  const auto n = static_cast<std::size_t>(members);
  Held held(n, std::vector<std::vector<int>>(static_cast<std::size_t>(slices), std::vector<int>(n)));
  for (std::size_t m = 0; m < n; ++m)
    for (std::size_t s = 0; s < held[m].size(); ++s)
      if (what.kind == K::Broadcast ? m == 0 : what.kind != K::AllGather || s == m) held[m][s][m] = 1;
  return held;
}

void play(Held& held, const MessageRound& round) {
  const Held before = held;
  for (const SliceMessage& message : round) {
    const auto slice = static_cast<std::size_t>(message.slice);
    const auto& sent = before[static_cast<std::size_t>(message.from)][slice];
    auto& kept = held[static_cast<std::size_t>(message.to)][slice];
    for (std::size_t i = 0; i < sent.size(); ++i) kept[i] = sent[i] + (message.adds ? kept[i] : 0);
  }
}

// Every sum has every member's contribution exactly once, wherever it is wanted.
TEST(CollectiveRounds, EveryContributionArrivesOnce) {
  for (int n = 2; n <= 17; ++n)
    for (const Collective& what : cases(n)) {
      const CollectiveRounds all = collective_rounds(what, n);
      Held held = begun(what, n, all.slices);
      for (const MessageRound& round : all.rounds) play(held, round);
      for (std::size_t m = 0; m < held.size(); ++m)
        for (std::size_t s = 0; s < held[m].size(); ++s) {
          const bool wanted = (what.kind != K::Reduce || m == 0) && (what.kind != K::ReduceScatter || m == s);
          if (!wanted) continue;
          std::vector<int> expected(held.size(), 1);
          if (what.kind == K::AllGather) expected.assign(held.size(), 0), expected[s] = 1;
          if (what.kind == K::Broadcast) expected.assign(held.size(), 0), expected[0] = 1;
          ASSERT_EQ(held[m][s], expected) << said(what, n) << ": slice " << s << " of member " << m;
        }
    }
}

// A member that receives a slice in a round does not send it in the same one, so memory is neither read nor written too early.
TEST(CollectiveRounds, NobodySendsWhatItReceives) {
  for (int n = 2; n <= 17; ++n)
    for (const Collective& what : cases(n))
      for (const MessageRound& round : collective_rounds(what, n).rounds) {
        std::set<std::pair<int, int>> received;
        for (const SliceMessage& message : round) received.insert({message.to, message.slice});
        for (const SliceMessage& message : round)
          ASSERT_FALSE(received.contains({message.from, message.slice})) << said(what, n);
      }
}

// Of 5040 n bytes, the most that one member sends: what collective_volume charges.
TEST(CollectiveRounds, TheBusiestMemberSendsWhatTheNetworkCharges) {
  for (int n = 2; n <= 17; ++n)
    for (const Collective& what : cases(n)) {
      if (what.servers != 1) continue;
      const CollectiveRounds all = collective_rounds(what, n);
      const std::int64_t bytes = std::int64_t{5040} * n;
      std::vector<double> sent(static_cast<std::size_t>(n));
      for (const MessageRound& round : all.rounds)
        for (const SliceMessage& message : round)
          sent[static_cast<std::size_t>(message.from)] += static_cast<double>(bytes) / all.slices;
      const double most = *std::ranges::max_element(sent);
      EXPECT_NEAR(most, collective_volume(what.kind, what.algorithm, {bytes}, n).bytes, 1e-6) << said(what, n);
    }
}

// Two servers that are members 3 and 1 of five: slice 0 goes to 3, slice 1 to 1, each from the four others, and back.
TEST(CollectiveRounds, ServersAreTheMembersThatAreNamed) {
  const Collective what{.algorithm = ParameterServer, .servers = 2, .served_by = {3, 1}};
  EXPECT_EQ(serving_members(what, 5), (std::vector<int>{3, 1}));
  EXPECT_EQ(serving_members({.algorithm = ParameterServer, .servers = 2}, 5), (std::vector<int>{0, 1}));
  const CollectiveRounds all = collective_rounds(what, 5);
  ASSERT_EQ(all.rounds.size(), 2u);
  ASSERT_EQ(all.rounds[0].size(), 8u);
  for (const SliceMessage& message : all.rounds[0]) EXPECT_EQ(message.to, message.slice == 0 ? 3 : 1);
  for (const SliceMessage& message : all.rounds[1]) EXPECT_EQ(message.from, message.slice == 0 ? 3 : 1);
}

// 2 (n - 1) rounds of a ring of 12 are 22; of a grid of 3 rows and 4 columns 2 (3 + 2) = 10, with the same bytes.
TEST(CollectiveRounds, AGridHasFewerRoundsThanARing) {
  EXPECT_EQ(collective_rounds({}, 12).rounds.size(), 22u);
  EXPECT_EQ(collective_rounds({.algorithm = TwoDimensional}, 12).rounds.size(), 10u);
  EXPECT_EQ(collective_rounds({.algorithm = Hierarchical, .servers = 6}, 12).rounds.size(), 2u * (5 + 1));
  EXPECT_EQ(grid_columns(12), 4);
  EXPECT_EQ(grid_columns(16), 4);
  EXPECT_EQ(grid_columns(2), 2);
  EXPECT_EQ(grid_columns(13), 13);
  EXPECT_FALSE(algorithm_applies({.algorithm = TwoDimensional}, 13));
  EXPECT_EQ(collective_rounds({.algorithm = TwoDimensional}, 13).rounds.size(), 24u);  // a ring
}

// Member 0 of 4, gathering to it, takes 3 G in and gives 3 G out; the others send and receive G.
TEST(CollectiveRounds, TheRootCarriesEverything) {
  std::vector<int> in(4), out(4);
  for (const MessageRound& round : collective_rounds({.algorithm = GatherToRoot, .servers = 3}, 4).rounds)
    for (const SliceMessage& message : round)
      ++out[static_cast<std::size_t>(message.from)], ++in[static_cast<std::size_t>(message.to)];
  EXPECT_EQ(in, (std::vector<int>{3, 1, 1, 1}));
  EXPECT_EQ(out, (std::vector<int>{3, 1, 1, 1}));
}

}  // namespace
}  // namespace foreshard::collective_rounds_test
