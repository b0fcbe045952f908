// The algorithms that a plan names, between threads: who sends what to whom, and the sums they make.
#include <gtest/gtest.h>

#include <cmath>
#include <map>
#include <random>
#include <thread>

#include "core/base/error.h"
#include "core/network/collective_rounds.h"
#include "exec/communicator/thread_communicator.h"

namespace foreshard::algorithms_test {
namespace {

using enum Algorithm;
using K = CollectiveKind;
using Sent = std::map<std::pair<int, int>, std::int64_t>;  // bytes, by sender and receiver

struct Outcome {
  std::vector<std::vector<double>> out = {};  // [rank][element]
  Sent sent = {};
};

std::vector<std::vector<double>> drawn(int ranks, int elements) {
  std::mt19937 random(11);
  std::uniform_real_distribution<double> uniform(-1, 1);
  std::vector<std::vector<double>> all(static_cast<std::size_t>(ranks),
                                       std::vector<double>(static_cast<std::size_t>(elements)));
  for (auto& one : all)
    for (double& x : one) x = uniform(random);
  return all;
}

MemoryRange stretch(std::vector<double>& values) {
  return {reinterpret_cast<std::byte*>(values.data()), {static_cast<std::int64_t>(values.size() * 8)}, DType::F64};
}

Outcome played(Collective what, std::vector<std::vector<double>> in, std::size_t out_elements) {
  const std::size_t full = std::max(in[0].size(), out_elements);
  what.group = {0}, what.bytes = {static_cast<std::int64_t>(full * 8)};
  Stop stop;
  ThreadMeetings meetings(stop);
  Outcome made;
  std::mutex mutex;
  meetings.on_message = [&](RankId from, RankId to, Bytes bytes) {
    const std::lock_guard lock(mutex);
    made.sent[{from.value, to.value}] += bytes.value;
  };
  made.out.assign(in.size(), std::vector<double>(out_elements, 0.5));
  std::vector<RankId> members;
  for (std::size_t r = 0; r < in.size(); ++r) members.push_back({static_cast<std::int32_t>(r)});
  std::vector<std::unique_ptr<StreamTask>> tasks;
  for (std::size_t r = 0; r < in.size(); ++r)
    tasks.push_back(ThreadCommunicator(meetings, members[r])
                        .collective({.what = what, .members = members, .from = stretch(in[r]), .to = stretch(made.out[r])}));
  std::vector<std::thread> threads;
  for (auto& task : tasks) threads.emplace_back([&task] { task->run(0); });
  for (std::thread& thread : threads) thread.join();
  return made;
}

Sent counted(const Collective& what, int n, std::int64_t bytes) {
  const CollectiveRounds all = collective_rounds(what, n);
  Sent sent;
  for (const MessageRound& round : all.rounds)
    for (const SliceMessage& message : round) sent[{message.from, message.to}] += bytes / all.slices;
  return sent;
}

std::vector<Collective> algorithms() {
  return {{},
          {.algorithm = Tree},
          {.algorithm = Tree, .servers = 2},
          {.algorithm = DoubleTree},
          {.algorithm = Hierarchical, .servers = 2},
          {.algorithm = TwoDimensional},
          {.algorithm = ParameterServer},
          {.algorithm = ParameterServer, .servers = 2},
          {.algorithm = ParameterServer, .servers = 1, .served_by = {1}},
          {.algorithm = ParameterServer, .servers = 2, .served_by = {1, 0}},
          {.algorithm = GatherToRoot}};
}

// Within 1e-12 of the sum, the same bits on every rank and in every run, with exactly the bytes between exactly the ranks that the
// algorithm has. 1680 n elements can be cut into all slices evenly, in whole vectors.
TEST(Algorithms, AllReduceIsTheSumByTheMessagesOfTheAlgorithm) {
  for (const int n : {3, 4, 6, 8})
    for (Collective what : algorithms())
      for (const Combine combine : {Combine::Sum, Combine::Mean, Combine::Max}) {
        what.combine = combine;
        const auto in = drawn(n, 1680 * n);
        const Outcome made = played(what, in, in[0].size());
        EXPECT_EQ(made.out, played(what, in, in[0].size()).out);
        EXPECT_EQ(made.sent, counted(what, n, std::int64_t{1680} * 8 * n)) << static_cast<int>(what.algorithm) << ", " << n;
        for (std::size_t i = 0; i < in[0].size(); ++i) {
          double expected = in[0][i];
          for (std::size_t r = 1; r < in.size(); ++r)
            expected = combine == Combine::Max ? std::max(expected, in[r][i]) : expected + in[r][i];
          if (combine == Combine::Mean) expected /= n;
          ASSERT_NEAR(made.out[0][i], expected, 1e-12) << static_cast<int>(what.algorithm) << ", " << n;
          for (std::size_t r = 1; r < in.size(); ++r) ASSERT_EQ(made.out[r][i], made.out[0][i]);
        }
      }
}

// Sizes that no number of slices divides, one element among them; added to what is there.
TEST(Algorithms, UnevenSizesAndSumsThatAreAdded) {
  for (const int n : {2, 3, 5, 7})
    for (Collective what : algorithms())
      for (const int elements : {1, 2, 1013, n == 3 ? 140'001 : 17}) {
        what.accumulate = true;
        const auto in = drawn(n, elements);
        const Outcome made = played(what, in, in[0].size());
        for (std::size_t i = 0; i < in[0].size(); ++i) {
          double expected = 0.5;
          for (const auto& one : in) expected += one[i];
          for (const auto& out : made.out)
            ASSERT_NEAR(out[i], expected, 1e-12) << static_cast<int>(what.algorithm) << ", " << n;
        }
      }
}

// A ring of four: everybody sends 2 (n - 1) / n of the tensor to the next one, and nothing to anybody else.
TEST(Algorithms, ARingTalksToItsNeighbours) {
  const Outcome made = played({}, drawn(4, 416), 416);
  EXPECT_EQ(made.sent, (Sent{{{0, 1}, 4992}, {{1, 2}, 4992}, {{2, 3}, 4992}, {{3, 0}, 4992}}));
}

// Gather to root, 4 members of 3200 bytes: the root takes 3 G and gives 3 G.
TEST(Algorithms, AllGoesThroughTheRoot) {
  const Outcome made = played({.algorithm = GatherToRoot}, drawn(4, 400), 400);
  EXPECT_EQ(made.sent, (Sent{{{1, 0}, 3200}, {{2, 0}, 3200}, {{3, 0}, 3200}, {{0, 1}, 3200}, {{0, 2}, 3200}, {{0, 3}, 3200}}));
}

// Reduce-scatter and all-gather on a grid and on nodes: member m has part m.
TEST(Algorithms, PartsBelongToTheirMembers) {
  for (const Collective& how :
       {Collective{}, Collective{.algorithm = Hierarchical, .servers = 2}, Collective{.algorithm = TwoDimensional},
        Collective{.algorithm = ParameterServer, .servers = 6}}) {
    const int n = 6, part = 70'000;
    const auto in = drawn(n, n * part);
    Collective what = how;
    what.kind = K::ReduceScatter;
    const Outcome parts = played(what, in, part);
    for (std::size_t r = 0; r < in.size(); ++r)
      for (std::size_t i = 0; i < part; ++i) {
        double expected = 0;
        for (const auto& one : in) expected += one[r * part + i];
        ASSERT_NEAR(parts.out[r][i], expected, 1e-12);
      }
    what.kind = K::AllGather;
    const Outcome whole = played(what, parts.out, n * part);
    for (std::size_t r = 0; r < in.size(); ++r)
      for (std::size_t i = 0; i < whole.out[r].size(); ++i) ASSERT_EQ(whole.out[r][i], parts.out[i / part][i % part]);
  }
}

TEST(Algorithms, TheSwitchOfNvlinkAddsNothingOnTheHost) {
  try {
    played({.algorithm = NvlinkSharp}, drawn(2, 8), 8);
    FAIL() << "was run";
  } catch (const Error& problem) {
    EXPECT_NE(std::string(problem.what()).find("nvlink"), std::string::npos) << problem.what();
  }
}

}  // namespace
}  // namespace foreshard::algorithms_test
