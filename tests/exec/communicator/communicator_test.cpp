// Collectives and exchanges between threads, against sums taken one after the other.
#include "exec/communicator/thread_communicator.h"

#include <gtest/gtest.h>

#include <random>
#include <thread>

#include "core/base/error.h"
#include "exec/arithmetic/host_float16.h"

namespace foreshard::communicator_test {
namespace {

struct Ranks {
  explicit Ranks(int n) : meetings(stop) {
    for (std::int32_t r = 0; r < n; ++r) {
      members.push_back({r});
      communicators.push_back(std::make_unique<ThreadCommunicator>(meetings, RankId{r}));
    }
  }
  void run(int times = 1) {
    meetings.check();
    std::vector<std::thread> threads;
    for (auto& task : tasks)
      threads.emplace_back([&task, times] {
        for (int i = 0; i < times; ++i) task->run(i);
      });
    for (std::thread& thread : threads) thread.join();
  }
  Stop stop;
  ThreadMeetings meetings;
  std::vector<RankId> members;
  std::vector<std::unique_ptr<ThreadCommunicator>> communicators;
  std::vector<std::unique_ptr<StreamTask>> tasks;
};

template <class T>
MemoryRange stretch(std::vector<T>& values, DType dtype) {
  return {reinterpret_cast<std::byte*>(values.data()), {static_cast<std::int64_t>(values.size() * sizeof(T))}, dtype};
}

using Numbers = std::vector<std::vector<double>>;  // [rank][element]

Numbers drawn(int ranks, int elements, unsigned seed) {
  std::mt19937 random(seed);
  std::uniform_real_distribution<double> uniform(-1, 1);
  Numbers all(static_cast<std::size_t>(ranks), std::vector<double>(static_cast<std::size_t>(elements)));
  for (auto& one : all)
    for (double& x : one) x = uniform(random);
  return all;
}

Numbers played(CollectiveKind kind, Numbers in, int out, bool in_place, Collective how = {}, double start = 0) {
  Ranks ranks(static_cast<int>(in.size()));
  const std::size_t full = std::max(in[0].size(), static_cast<std::size_t>(out));
  Numbers to(in.size(), std::vector<double>(static_cast<std::size_t>(out), start));
  for (std::size_t r = 0; r < in.size(); ++r) {
    const MemoryRange from = stretch(in[r], DType::F64);
    how.kind = kind, how.group = {0}, how.bytes = {static_cast<std::int64_t>(full * 8)};
    ranks.tasks.push_back(ranks.communicators[r]->collective({.what = how,
                                                              .members = ranks.members,
                                                              .from = from,
                                                              .to = in_place ? from : stretch(to[r], DType::F64),
                                                              .where = "test"}));
  }
  ranks.run();
  return in_place ? in : to;
}

Collective all_serve(int members, Combine combine = Combine::Sum) {
  return {.algorithm = Algorithm::ParameterServer, .combine = combine, .servers = members};
}

TEST(ThreadCommunicator, WhereAllServeAnAllReduceSumsInRankOrder) {
  for (const int n : {1, 2, 3, 5, 8})
    for (const int elements : {1, 3, 8, 5003})
      for (const bool in_place : {false, true}) {
        const Numbers in = drawn(n, elements, 1);
        const Numbers out = played(CollectiveKind::AllReduce, in, elements, in_place, all_serve(n));
        const Numbers mean = played(CollectiveKind::AllReduce, in, elements, in_place, all_serve(n, Combine::Mean));
        const Numbers most = played(CollectiveKind::AllReduce, in, elements, in_place, all_serve(n, Combine::Max));
        for (std::size_t i = 0; i < in[0].size(); ++i) {
          double sum = in[0][i], largest = in[0][i];
          for (std::size_t r = 1; r < in.size(); ++r) sum += in[r][i], largest = std::max(largest, in[r][i]);
          for (std::size_t r = 0; r < in.size(); ++r) {
            ASSERT_EQ(out[r][i], sum);
            ASSERT_EQ(mean[r][i], sum / n);
            ASSERT_EQ(most[r][i], largest);
          }
        }
      }
}

TEST(ThreadCommunicator, ReduceScatterAndAllGather) {
  for (const int n : {1, 2, 3, 8}) {
    const int part = 701, elements = n * part;
    const Numbers in = drawn(n, elements, 2);
    const Numbers apart = played(CollectiveKind::ReduceScatter, in, part, false);
    const Numbers added = played(CollectiveKind::ReduceScatter, in, part, false, {.accumulate = true}, 10);
    const Numbers in_place = played(CollectiveKind::ReduceScatter, in, part, true);
    Numbers parts(in.size());
    for (std::size_t r = 0; r < in.size(); ++r)
      for (int i = 0; i < elements; ++i) {
        const auto at = static_cast<std::size_t>(i);
        const bool own = at / part == r;
        if (!own) {
          ASSERT_EQ(in_place[r][at], in[r][at]);  // what is not its slice stays
          continue;
        }
        double sum = in[0][at];
        for (std::size_t other = 1; other < in.size(); ++other) sum += in[other][at];
        ASSERT_NEAR(apart[r][at % part], sum, 1e-12);
        ASSERT_NEAR(added[r][at % part], 10 + sum, 1e-12);
        ASSERT_NEAR(in_place[r][at], sum, 1e-12);
        parts[r].push_back(in_place[r][at]);
      }
    const Numbers whole = played(CollectiveKind::AllGather, parts, elements, false);
    const Numbers again = played(CollectiveKind::AllGather, in_place, elements, true);
    for (std::size_t r = 0; r < in.size(); ++r)
      for (std::size_t i = 0; i < in[0].size(); ++i) {
        ASSERT_EQ(whole[r][i], parts[i / part][i % part]);
        ASSERT_EQ(again[r][i], parts[i / part][i % part]);
      }
  }
}

TEST(ThreadCommunicator, BroadcastReduceAllToAll) {
  const int n = 4, elements = 4 * 37;
  const Numbers in = drawn(n, elements, 3);
  const Numbers from_first = played(CollectiveKind::Broadcast, in, elements, false);
  const Numbers to_first = played(CollectiveKind::Reduce, in, elements, false, {}, -1);
  const Numbers swapped = played(CollectiveKind::AllToAll, in, elements, false);
  for (std::size_t r = 0; r < in.size(); ++r)
    for (std::size_t i = 0; i < in[0].size(); ++i) {
      EXPECT_EQ(from_first[r][i], in[0][i]);
      EXPECT_NEAR(to_first[r][i], r == 0 ? in[0][i] + in[1][i] + in[2][i] + in[3][i] : -1, 1e-12);
      EXPECT_EQ(swapped[r][i], in[i / 37][r * 37 + i % 37]);
    }
}

// 1 + 2^-9 + 2^-9 in bf16, which has 8 bits: each small number alone would be rounded away.
TEST(ThreadCommunicator, SixteenBitSumsOfAServerAreRoundedOnce) {
  Ranks ranks(3);
  std::vector<std::vector<BFloat16>> values = {{to_bfloat16(1.0F)}, {to_bfloat16(0x1p-8F)}, {to_bfloat16(0x1p-8F)}};
  for (std::size_t r = 0; r < 3; ++r)
    ranks.tasks.push_back(ranks.communicators[r]->collective(
        {.what = {.algorithm = Algorithm::ParameterServer, .group = {0}, .bytes = {2}, .servers = 3},
         .members = ranks.members,
         .from = stretch(values[r], DType::BF16),
         .to = stretch(values[r], DType::BF16)}));
  ranks.run();
  for (const auto& value : values) EXPECT_EQ(to_float(value[0]), 1.0F + 0x1p-7F);
}

// A ring: everybody sends to the next and receives from the one before, many times over.
TEST(ThreadCommunicator, ExchangesGoRound) {
  const int n = 5;
  Ranks ranks(n);
  std::vector<std::vector<std::int64_t>> out, in(n, {-1});
  for (std::int64_t r = 0; r < n; ++r) out.push_back({r * 10});
  for (std::int32_t r = 0; r < n; ++r) {
    const auto at = static_cast<std::size_t>(r);
    ranks.tasks.push_back(ranks.communicators[at]->exchange({.to = {(r + 1) % n},
                                                             .from = {(r + n - 1) % n},
                                                             .tag = "ring",
                                                             .send = stretch(out[at], DType::I64),
                                                             .receive = stretch(in[at], DType::I64),
                                                             .where = "rank " + std::to_string(r)}));
  }
  ranks.run(200);
  for (std::int64_t r = 0; r < n; ++r) EXPECT_EQ(in[static_cast<std::size_t>(r)][0], (r + n - 1) % n * 10);
}

TEST(ThreadCommunicator, SidesThatDoNotAgreeAreRefused) {
  Ranks ranks(2);
  std::vector<double> a(4), b(4);
  CollectiveCall call{.what = {.group = {0}, .bytes = {32}},
                      .members = ranks.members,
                      .from = stretch(a, DType::F64),
                      .to = stretch(b, DType::F64),
                      .where = "here"};
  ranks.communicators[0]->collective(call);
  EXPECT_THROW(ranks.meetings.check(), Error);  // rank 1 does not come
  CollectiveCall other = call;
  other.what.bytes = {16};
  EXPECT_THROW(ranks.communicators[1]->collective(other), Error);
  other = call;
  other.from.dtype = other.to.dtype = DType::I64;
  EXPECT_THROW(ranks.communicators[1]->collective(other), Error);
  other = call;
  other.to.bytes = {24};
  EXPECT_THROW(ranks.communicators[1]->collective(other), Error);
  EXPECT_THROW(ranks.communicators[1]->exchange({.from = {0}, .tag = "t", .receive = stretch(a, DType::F64), .where = "r"});
               ranks.meetings.check(), Error);
}

// A partner that never comes: the one who waits gives up when somebody stops the run.
TEST(ThreadCommunicator, WaitingEndsWithAStop) {
  Ranks ranks(2);
  std::vector<double> a(4);
  auto alone = ranks.communicators[0]->collective({.what = {.group = {0}, .bytes = {32}},
                                                   .members = ranks.members,
                                                   .from = stretch(a, DType::F64),
                                                   .to = stretch(a, DType::F64)});
  bool stopped = false;
  std::thread waiting([&] {
    try {
      alone->run(0);
    } catch (const Stopped&) {
      stopped = true;
    }
  });
  ranks.stop.raise("enough");
  waiting.join();
  EXPECT_TRUE(stopped);
  EXPECT_EQ(ranks.stop.why(), "enough");
}

}  // namespace
}  // namespace foreshard::communicator_test
