// Second names of earlier checkpoints: the newest few stay, other files are left alone.
#include "exec/data/kept_checkpoints.h"

#include <gtest/gtest.h>

#include <chrono>
#include <set>

#include "core/base/error.h"
#include "tests/exec/checkpoint_folder.h"

namespace foreshard::kept_checkpoints_test {
namespace {

namespace fs = std::filesystem;

struct KeptCheckpoints : CheckpointFolder {
  // Writes the checkpoint as a run does: a new file under the same name. `hour` is its time.
  void write(const std::string& text, int hour) const {
    fs::remove(file("run"));
    std::ofstream(file("run")) << text;
    fs::last_write_time(file("run"), fs::file_time_type{} + std::chrono::hours(hour));
  }
  std::set<std::string> names() const {
    std::set<std::string> all;
    for (const auto& entry : fs::directory_iterator(folder)) all.insert(entry.path().filename().string());
    return all;
  }
};

TEST_F(KeptCheckpoints, TheNewestStay) {
  for (const int step : {5, 10, 15, 20}) {
    write("after " + std::to_string(step), step);
    keep_checkpoints(file("run"), step, 2);
  }
  EXPECT_EQ(names(), (std::set<std::string>{"run", "run.step-15", "run.step-20"}));
  EXPECT_EQ(bytes_of(file("run.step-15")), "after 15");
  EXPECT_EQ(bytes_of(file("run.step-20")), "after 20");
  EXPECT_TRUE(fs::equivalent(file("run"), file("run.step-20")));  // one file, two names
}

// Newest means written last: a run that was resumed at step 10 writes 12 after 20.
TEST_F(KeptCheckpoints, NewestIsByTime) {
  write("old", 1), keep_checkpoints(file("run"), 20, 3);
  write("new", 2), keep_checkpoints(file("run"), 12, 1);
  EXPECT_EQ(names(), (std::set<std::string>{"run", "run.step-12"}));
}

// A second name of the link would be no copy of what it leads to now.
TEST_F(KeptCheckpoints, WhereTheNameIsALink) {
  fs::create_directory(file("disk"));
  fs::create_symlink("disk/real", file("link"));
  std::ofstream(file("disk/real")) << "first";
  keep_checkpoints(file("link"), 1, 2);
  fs::remove(file("disk/real"));
  std::ofstream(file("disk/real")) << "second";
  keep_checkpoints(file("link"), 2, 2);
  EXPECT_EQ(bytes_of(file("disk/real.step-1")), "first");
  EXPECT_EQ(bytes_of(file("disk/real.step-2")), "second");
}

// The same step again takes the name over.
TEST_F(KeptCheckpoints, AStepIsWrittenAgain) {
  write("first", 1), keep_checkpoints(file("run"), 7, 2);
  write("second", 2), keep_checkpoints(file("run"), 7, 2);
  EXPECT_EQ(bytes_of(file("run.step-7")), "second");
  EXPECT_EQ(names().size(), 2U);
}

TEST_F(KeptCheckpoints, OtherFilesAreLeftAlone) {
  const std::set<std::string> others = {"run.step-", "run.step-3x", "other.step-3", "run.step-1234567890", "run.step--1"};
  for (const std::string& name : others) std::ofstream(file(name)) << "mine";
  write("x", 1), keep_checkpoints(file("run"), 9, 1);
  write("y", 2), keep_checkpoints(file("run"), 10, 1);
  std::set<std::string> expected = others;
  expected.insert({"run", "run.step-10"});
  EXPECT_EQ(names(), expected);
}

TEST_F(KeptCheckpoints, AFileThatIsNotThereIsTold) {
  try {
    keep_checkpoints(file("none"), 3, 1);
    FAIL();
  } catch (const DeviceError& error) {
    EXPECT_EQ(std::string(error.what()).find("second name " + file("none.step-3") + " failed: "), 0U) << error.what();
  }
}

}  // namespace
}  // namespace foreshard::kept_checkpoints_test
