// What goes wrong while a plan runs: every rank stops, and the message names the one to blame.
#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <csignal>
#include <cstdio>
#include <memory>
#include <thread>

#include "exec/interpreter/rank_threads.h"
#include "tests/changed_text.h"
#include "tests/exec/training.h"

namespace foreshard::fault_test {
namespace {

Plan four_ranks() { return lowered(tiny_gpt(), in_double({.dp = 2, .pp = 2, .batch = {.micro = 1}})); }

std::string failure(const Plan& plan, const ExecuteOptions& options) {
  try {
    run(plan, options);
  } catch (const DeviceError& error) {
    return error.what();
  }
  return "no failure";
}

TEST(Fault, ARankThatThrowsStopsTheOthersByName) {
  ExecuteOptions options = training(2);
  options.before = [](RankId rank, int action, int instruction, int run) {
    if (rank.value == 2 && action == 3 && instruction == 4 && run == 1) throw std::runtime_error("a bit flipped");
  };
  const std::string what = failure(four_ranks(), options);
  EXPECT_NE(what.find("rank 2, action 3"), std::string::npos) << what;
  EXPECT_NE(what.find("instruction 4"), std::string::npos) << what;
  EXPECT_NE(what.find("a bit flipped"), std::string::npos) << what;
}

// A bug of ours on the thread of a rank stops all of them, and is told as one.
TEST(Fault, ABugOnARankStopsTheOthersByName) {
  ExecuteOptions options = training(2);
  options.before = [](RankId rank, int action, int instruction, int run) {
    if (rank.value == 2 && action == 3 && instruction == 4 && run == 1) throw Bug("one == two is false (here.cpp:1)");
  };
  try {
    run(four_ranks(), options);
    FAIL() << "no failure";
  } catch (const Bug& bug) {
    const std::string what = bug.what();
    EXPECT_NE(what.find("rank 2, action 3"), std::string::npos) << what;
    EXPECT_NE(what.find("one == two is false (here.cpp:1)"), std::string::npos) << what;
  }
}

// The instruction comes back only after everybody else has given up.
TEST(Fault, ARankThatHangsStopsTheOthersByName) {
  static std::atomic<bool> over = false;  // the rank may look at it when the test is over
  ExecuteOptions options = training(1);
  options.patience = std::chrono::milliseconds(200);
  options.before = [](RankId rank, int action, int instruction, int) {
    while (rank.value == 1 && action == 2 && instruction == 3 && !over)
      std::this_thread::sleep_for(std::chrono::milliseconds(5));
  };
  std::thread later([] {
    std::this_thread::sleep_for(std::chrono::milliseconds(1500));
    over = true;
  });
  const std::string what = failure(four_ranks(), options);
  over = true;
  later.join();
  EXPECT_NE(what.find("rank 1, action 2"), std::string::npos) << what;
  EXPECT_NE(what.find("instruction 3"), std::string::npos) << what;
  EXPECT_NE(what.find("does not come to an end"), std::string::npos) << what;
}

// The same with the patience that everybody gets: no rank goes on from the moment of the hang, and 5 seconds later at most all
// have stopped. The time is told, not judged: this machine may be busy.
TEST(Fault, DefaultPatienceEndsAHangWithinFiveSeconds) {
  EXPECT_LT(RankThreads::longest_hang({}), std::chrono::seconds(5));
  using Clock = std::chrono::steady_clock;
  static std::atomic<bool> over = false;  // the rank comes back when the test is over
  static std::atomic<Clock::time_point> hung = Clock::time_point();
  ExecuteOptions options = training(1);
  options.before = [](RankId rank, int action, int instruction, int) {
    if (rank.value != 3 || action != 1 || instruction != 2) return;
    hung = Clock::now();
    while (!over && Clock::now() - hung.load() < std::chrono::minutes(2))
      std::this_thread::sleep_for(std::chrono::milliseconds(5));
  };
  const std::string what = failure(four_ranks(), options);
  const double seconds = std::chrono::duration<double>(Clock::now() - hung.load()).count();
  over = true;
  EXPECT_NE(what.find("rank 3, action 1"), std::string::npos) << what;
  EXPECT_NE(what.find("instruction 2"), std::string::npos) << what;
  RecordProperty("seconds_until_all_had_stopped", std::to_string(seconds));
  std::printf("a hang ended all ranks after %.2f s: %s\n", seconds, what.c_str());
}

// A rank that computes for a long time may do so, but not once the run was asked to stop: the step would not end.
TEST(Fault, WhoIsAskedToStopDoesNotWaitForAnEndlessInstruction) {
  static std::atomic<bool> over = false;  // the rank may look at it when the test is over
  const std::atomic<bool> cancel = true;
  ExecuteOptions options = training(1);
  options.cancel = &cancel;
  options.patience = std::chrono::milliseconds(100), options.limits.longest_when_asked = std::chrono::milliseconds(300);
  options.before = [](RankId rank, int action, int instruction, int) {
    const auto began = std::chrono::steady_clock::now();
    while (rank.value == 1 && action == 2 && instruction == 3 && !over)  // computes
      if (std::chrono::steady_clock::now() - began > std::chrono::seconds(20)) return;
  };
  const std::string what = failure(four_ranks(), options);
  over = true;
  EXPECT_NE(what.find("rank 1, action 2"), std::string::npos) << what;
  EXPECT_NE(what.find("does not come to an end"), std::string::npos) << what;
}

// Rank 0 fails while rank 1 is busy for another 150 ms, in the middle of which the process is stopped for longer than ranks get to leave.
// Whether all of it was freed: what the ranks call first holds a token.
bool frees_all_when_stopped() {
  auto token = std::make_shared<int>();
  const std::weak_ptr<int> kept = token;
  std::atomic<bool> busy = false;
  ExecuteOptions options = training(1);
  options.before = [token, &busy](RankId rank, int action, int instruction, int) {
    if (action != 1 || instruction != 1 || rank.value > 1) return;
    using namespace std::chrono_literals;
    if (rank.value == 0) {
      while (!busy) std::this_thread::sleep_for(1ms);
      throw std::runtime_error("a bit flipped");
    }
    busy = true;
    std::this_thread::sleep_for(50ms);
    std::raise(SIGSTOP);
    std::this_thread::sleep_for(100ms);
  };
  const std::string what = failure(four_ranks(), options);
  options = {};
  token.reset();
  return what.find("a bit flipped") != std::string::npos && kept.expired();
}

TEST(Fault, RanksOfAProcessThatWasStoppedStillGetTheTimeToLeave) {
  const pid_t child = ::fork();
  ASSERT_GE(child, 0);
  if (child == 0) ::_exit(frees_all_when_stopped() ? 0 : 1);
  int status = 0;
  ASSERT_EQ(::waitpid(child, &status, WUNTRACED), child);
  ASSERT_TRUE(WIFSTOPPED(status));
  std::this_thread::sleep_for(std::chrono::milliseconds(800));  // the ranks get 500
  ASSERT_EQ(::kill(child, SIGCONT), 0);
  ASSERT_EQ(::waitpid(child, &status, 0), child);
  EXPECT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == 0) << status;
}

// Both ranks send first and receive after, on one stream: each waits until the other takes what it sent.
TEST(Fault, ADeadlockNamesWhoWaits) {
  const auto exchange = [](std::int32_t other, bool sends, const std::string& tag) {
    Exchange what{.tag = tag, .bytes = {64}};
    (sends ? what.to : what.from) = Peer{.role_shift = other};
    const Use use{.buffer = {sends ? 0 : 1}};
    Instruction instruction{.name = (sends ? "send " : "receive ") + tag, .what = what, .stream = {0}};
    (sends ? instruction.reads : instruction.writes) = {use};
    return instruction;
  };
  Plan plan;
  plan.samples = 1;
  for (std::int32_t r = 0; r < 2; ++r) {
    plan.segments.push_back({.name = "talk",
                             .instructions = {exchange(1 - 2 * r, true, r == 0 ? "ping" : "pong"),
                                              exchange(1 - 2 * r, false, r == 0 ? "pong" : "ping")}});
    plan.roles.push_back({.streams = {{}},
                          .buffers = {{.bytes = {64}, .resident = true}, {.bytes = {64}, .offsets = {{64}}, .resident = true}},
                          .actions = {{.segment = {r}}}});
  }
  ExecuteOptions options;
  options.patience = std::chrono::milliseconds(200);
  const std::string what = failure(plan, options);
  EXPECT_NE(what.find("waiting for a partner"), std::string::npos) << what;
  EXPECT_NE(what.find("rank 0, action 0 (talk), instruction 0 (send ping)"), std::string::npos) << what;
  EXPECT_NE(what.find("rank 1, action 0 (talk), instruction 0 (send pong)"), std::string::npos) << what;
}

// A rank that never answers is refused before the start.
TEST(Fault, AMessageWithoutAPartnerIsRefused) {
  Plan plan = lowered(tiny_gpt(), in_double({.pp = 2, .batch = {.micro = 4}}));
  plan.roles[1].actions.erase(plan.roles[1].actions.begin());
  EXPECT_THROW(run(plan, training(1)), Error);
}

TEST(Fault, APlanThatCannotBeRunIsRefused) {
  const Plan good = lowered(tiny_gpt(), in_double({.dp = 2, .batch = {.micro = 2}}));
  const auto refused = [&](auto change) {
    Plan plan = good;
    change(plan);
    return error_of([&] { run(plan, training(1)); });
  };
  EXPECT_NE(refused([](Plan& p) { p.samples = 9; }).find("samples: found 9"), std::string::npos);
  EXPECT_NE(refused([](Plan& p) {
              p.axes[0].name = "cp", p.axes[0].dense = DenseKind::Context, p.placement.order.clear();
            }).find("rows of 1 context-parallel rank"),
            std::string::npos);
  EXPECT_NE(refused([](Plan& p) { p.tensors[0].init = "magic"; }).find("magic"), std::string::npos);
}

}  // namespace
}  // namespace foreshard::fault_test
