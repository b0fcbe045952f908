// A process for each simulation: answers, errors, progress, cancelling and deaths come back.
#include "sim/forked_process.h"

#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <csignal>
#include <functional>
#include <new>
#include <string>
#include <vector>

#include "core/base/error.h"

namespace foreshard::sim::forked_process_test {
namespace {

using Body = std::function<void(const ForkedProcess::Progress&)>;

std::string message(const Body& body) {
  try {
    ForkedProcess(body).wait();
  } catch (const std::exception& error) {
    return error.what();
  }
  return "";
}

TEST(ForkedProcess, WhatItWritesIsReadHere) {
  const SharedArray<int> numbers(1'000'000), none(0);
  EXPECT_EQ(none.items().size(), 0u);
  EXPECT_EQ(numbers.items().back(), 0);
  int own = 0;
  ForkedProcess process([&](const ForkedProcess::Progress&) {
    own = 7;
    std::ranges::fill(numbers.items(), own);
  });
  process.wait();
  EXPECT_EQ(own, 0);
  EXPECT_EQ(std::ranges::count(numbers.items(), 7), 1'000'000);
}

TEST(ForkedProcess, ThisOneGoesOnMeanwhile) {
  const SharedArray<int> numbers(1);
  const std::atomic_ref<int> said(numbers.items().front());
  ForkedProcess process([&](const ForkedProcess::Progress&) {
    while (said == 0) usleep(100);
  });
  said = 1;
  process.wait();
}

// Those that were done in other tests.
void reap_all() {
  while (waitpid(-1, nullptr, 0) > 0) {
  }
}

TEST(ForkedProcess, ErrorsComeBackAndNothingStays) {
  reap_all();
  EXPECT_EQ(message([](const ForkedProcess::Progress&) { throw Error("plan", "costs", "-1", "0 or more"); }),
            "plan: costs: found -1, expected 0 or more");
  EXPECT_THROW(ForkedProcess([](const ForkedProcess::Progress&) { throw std::bad_alloc(); }).wait(), std::bad_alloc);
  EXPECT_EQ(waitpid(-1, nullptr, WNOHANG), -1);  // no child is left
}

// Children that are done are reaped by those that follow, so they do not pile up.
TEST(ForkedProcess, ManyLeaveFewBehind) {
  reap_all();
  constexpr int kMany = 50;
  for (int i = 0; i < kMany; ++i) ForkedProcess([](const ForkedProcess::Progress&) {}).wait();
  int left = 0;
  while (waitpid(-1, nullptr, 0) > 0) ++left;
  EXPECT_GE(left, 1);
  EXPECT_LT(left, 10);
}

TEST(ForkedProcess, ADeathIsADeviceError) {
  EXPECT_EQ(message([](const ForkedProcess::Progress&) { std::raise(SIGKILL); }), "simulation failed: ended by signal 9");
  EXPECT_EQ(message([](const ForkedProcess::Progress&) { _exit(3); }), "simulation failed: ended with status 3");
}

TEST(ForkedProcess, ProgressIsHeardAndCancelEndsIt) {
  reap_all();
  std::atomic<bool> cancel = false;
  double heard = 0;
  const auto hear = [&](double fraction) {
    heard = fraction;
    cancel = true;
  };
  EXPECT_THROW(ForkedProcess([](const ForkedProcess::Progress& progress) {
                 progress(0.25);
                 for (;;) pause();
               }).wait(&cancel, hear),
               Error);
  EXPECT_EQ(heard, 0.25);
  EXPECT_EQ(waitpid(-1, nullptr, WNOHANG), -1);
}

}  // namespace
}  // namespace foreshard::sim::forked_process_test
