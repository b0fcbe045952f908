// A process for each simulation: answers, errors, progress, cancelling and deaths come back.
#include "sim/own_process.h"

#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <csignal>
#include <functional>
#include <new>
#include <string>
#include <vector>

#include "core/base/error.h"

namespace foreshard::sim {
namespace {

void* nowhere(std::size_t) { return nullptr; }

std::string message(const std::function<void(const Reply&)>& body) {
  try {
    in_own_process(body, nowhere);
  } catch (const std::exception& error) {
    return error.what();
  }
  return "";
}

TEST(OwnProcess, BlocksComeBackInOrder) {
  std::vector<std::vector<int>> blocks;
  in_own_process(
      [](const Reply& reply) {
        const std::vector<int> many(1'000'000, 7), none;  // more than a pipe holds
        reply.write(many.data(), many.size() * sizeof(int));
        reply.write(none.data(), 0);
        reply.write(many.data(), sizeof(int));
      },
      [&](std::size_t bytes) { return blocks.emplace_back(bytes / sizeof(int)).data(); });
  ASSERT_EQ(blocks.size(), 3u);
  EXPECT_EQ(blocks[0], std::vector<int>(1'000'000, 7));
  EXPECT_TRUE(blocks[1].empty());
  EXPECT_EQ(blocks[2], std::vector<int>{7});
}

TEST(OwnProcess, ErrorsComeBackAndNothingStays) {
  EXPECT_EQ(message([](const Reply&) { throw Error("plan", "costs", "-1", "0 or more"); }),
            "plan: costs: found -1, expected 0 or more");
  EXPECT_THROW(in_own_process([](const Reply&) { throw std::bad_alloc(); }, nowhere), std::bad_alloc);
  EXPECT_EQ(waitpid(-1, nullptr, WNOHANG), -1);  // no child is left
}

TEST(OwnProcess, ADeathIsADeviceError) {
  EXPECT_EQ(message([](const Reply&) { std::raise(SIGKILL); }), "simulation failed: ended by signal 9");
  EXPECT_EQ(message([](const Reply&) { _exit(3); }), "simulation failed: ended with status 3");
}

TEST(OwnProcess, ProgressIsHeardAndCancelEndsIt) {
  std::atomic<bool> cancel = false;
  double heard = 0;
  const auto forever = [](const Reply& reply) {
    reply.progress(0.25);
    for (;;) pause();
  };
  const auto progress = [&](double fraction) {
    heard = fraction;
    cancel = true;
  };
  EXPECT_THROW(in_own_process(forever, nowhere, &cancel, progress), Error);
  EXPECT_EQ(heard, 0.25);
  EXPECT_EQ(waitpid(-1, nullptr, WNOHANG), -1);
}

}  // namespace
}  // namespace foreshard::sim
