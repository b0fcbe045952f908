#include "cli/job/workers.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <atomic>
#include <csignal>
#include <cstdio>
#include <new>
#include <string>
#include <vector>

#include "core/base/error.h"

namespace foreshard {

TEST(Workers, GiveResultsInOrderFromOtherProcesses) {
  std::size_t told = 0;
  int here = 0;
  const auto results = in_workers(5,
                                  [&](std::size_t i) {
                                    ++here;  // in the worker only
                                    return static_cast<double>(i * i);
                                  },
                                  {.processes = 3, .finished = [&](std::size_t) { ++told; }});
  for (std::size_t i = 0; i < 5; ++i) EXPECT_EQ(results[i], static_cast<double>(i * i));
  EXPECT_EQ(told, 5u);
  EXPECT_EQ(here, 0);
}

// What the program has printed, but not yet written, is not written by a worker that flushes its own output.
TEST(Workers, WhatWasPrintedBeforeIsWrittenOnce) {
  testing::internal::CaptureStdout();
  std::printf("once");
  in_workers(3, [](std::size_t) {
    std::fflush(stdout);
    return 0.0;
  });
  EXPECT_EQ(testing::internal::GetCapturedStdout(), "once");
}

TEST(Workers, AMessageComesBackAndADeathIsTold) {
  EXPECT_THROW(in_workers(2, [](std::size_t i) -> double { throw Error("work " + std::to_string(i)); }, {.processes = 1}),
               Error);
  EXPECT_THROW(in_workers(1,
                          [](std::size_t) -> double {
                            std::raise(SIGKILL);
                            return 0;
                          }),
               DeviceError);
}

// A bug of ours in one call is told, and the others go on; without a listener it is thrown, as what else a call throws, in its own kind.
TEST(Workers, ABugOfOneCall) {
  const auto work = [](std::size_t i) -> double {
    if (i == 1) throw Bug("one is two is false (here.cpp:1)");
    return static_cast<double>(i);
  };
  std::vector<std::string> told;
  const auto results = in_workers(
      3, work, {.failed = [&](std::size_t i, const Bug& bug) { told.push_back(std::to_string(i) + " " + bug.what()); }});
  EXPECT_EQ(told, std::vector<std::string>{"1 one is two is false (here.cpp:1)"});
  EXPECT_EQ(results[0], 0.0);
  EXPECT_FALSE(results[1]);
  EXPECT_EQ(results[2], 2.0);
  EXPECT_THROW(in_workers(3, work), Bug);
  EXPECT_THROW(in_workers(1, [](std::size_t) -> double { throw std::bad_alloc(); }), std::bad_alloc);
  EXPECT_THROW(in_workers(1, [](std::size_t) -> double { throw DeviceError("call", "code"); }), DeviceError);
}

// The second work would sleep for an hour.
TEST(Workers, StopLeavesTheRestEmpty) {
  bool done = false;
  const auto results =
      in_workers(2,
                 [](std::size_t i) {
                   if (i == 1) sleep(3600);
                   return 1.0;
                 },
                 {.processes = 2, .stop = [&] { return done; }, .finished = [&](std::size_t) { done = true; }});
  EXPECT_EQ(results[0], 1.0);
  EXPECT_FALSE(results[1]);
}

}  // namespace foreshard
