// Locks on files: one holder at a time, and none is left behind by a process that was killed.
#include "core/base/file_lock.h"

#include <gtest/gtest.h>
#include <signal.h>
#include <sys/wait.h>

#include <atomic>
#include <filesystem>
#include <fstream>
#include <optional>
#include <thread>

#include "tests/changed_text.h"

namespace foreshard::file_lock_test {
namespace {

namespace fs = std::filesystem;
using enum FileLock::IfHeld;

struct Lock : testing::Test {
  void SetUp() override {
    folder = fs::temp_directory_path() / ("foreshard-lock-" + std::to_string(::getpid()));
    fs::create_directories(folder);
  }
  void TearDown() override { fs::remove_all(folder); }
  std::string path(const std::string& name) const { return (folder / name).string(); }
  bool empty() const { return fs::is_empty(folder); }
  fs::path folder = {};
};

TEST_F(Lock, ASecondHolderIsRefusedUntilTheFirstIsDone) {
  std::optional<FileLock> first(std::in_place, path("a"), Refuse);
  const std::string said = error_of([&] { FileLock(path("a"), Refuse); });
  EXPECT_EQ(said.find(path("a") + ": found a file that process " + std::to_string(::getpid()) + " on "), 0U) << said;
  EXPECT_TRUE(said.ends_with(" is writing, expected one that nobody else writes")) << said;
  EXPECT_EQ(error_of([&] { FileLock(path("b"), Refuse); }), "no error");  // another file of the same folder
  first.reset();
  EXPECT_EQ(error_of([&] { FileLock(path("a"), Refuse); }), "no error");
  EXPECT_TRUE(empty());
}

TEST_F(Lock, UnderEveryNameOfTheFile) {
  std::ofstream(path("real")) << "x";
  fs::create_symlink("real", path("link"));
  const FileLock held(path("link"), Refuse);
  EXPECT_NE(error_of([&] { FileLock(path("real"), Refuse); }), "no error");
}

// The file beside it stays when its process is killed, but it is no lock: the next one takes it over and removes it.
TEST_F(Lock, AKilledHolderHoldsNothing) {
  const pid_t child = ::fork();
  ASSERT_GE(child, 0);
  if (child == 0) {
    const FileLock lock(path("a"), Refuse);
    ::raise(SIGKILL);
  }
  int status = 0;
  ASSERT_EQ(::waitpid(child, &status, 0), child);
  EXPECT_FALSE(empty());
  EXPECT_EQ(error_of([&] { FileLock(path("a"), Refuse); }), "no error");
  EXPECT_TRUE(empty());
}

// Many that wait for each other: never two at a time, also while the file of the lock is removed and made again.
TEST_F(Lock, WhoWaitsGetsItInTheEnd) {
  std::atomic<int> inside = 0, done = 0;
  std::atomic<bool> together = false;
  std::vector<std::thread> all;
  for (int t = 0; t < 4; ++t)
    all.emplace_back([&] {
      for (int i = 0; i < 100; ++i) {
        const FileLock lock(path("a"), Wait);
        if (++inside > 1) together = true;
        std::this_thread::yield();
        --inside, ++done;
      }
    });
  for (std::thread& thread : all) thread.join();
  EXPECT_FALSE(together);
  EXPECT_EQ(done, 400);
  EXPECT_TRUE(empty());
}

TEST_F(Lock, WhatIsNoFileIsNotLocked) {
  const FileLock one("/dev/null", Refuse), other("/dev/null", Refuse);
  EXPECT_EQ(error_of([&] { FileLock(path("no/such"), Refuse); }),
            path("no/such") + ": found No such file or directory, expected a file that can be written");
  fs::create_symlink("/dev/null", path(".a.foreshard-lock"));
  EXPECT_NE(error_of([&] { FileLock(path("a"), Refuse); }).find("symbolic link"), std::string::npos);  // not followed
  std::ofstream(path("precious")) << "mine";
  fs::create_hard_link(path("precious"), path(".b.foreshard-lock"));
  EXPECT_NE(error_of([&] { FileLock(path("b"), Refuse); }).find("found a file of something else"), std::string::npos);
  EXPECT_EQ(fs::file_size(path("precious")), 4U);
}

}  // namespace
}  // namespace foreshard::file_lock_test
