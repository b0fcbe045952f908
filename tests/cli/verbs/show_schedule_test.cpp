// show schedule file:F: what it draws, and what it says of a file that is no schedule.
#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>

#include "tests/cli/run_line.h"

namespace foreshard {

namespace fs = std::filesystem;

class ShowSchedule : public testing::Test {
 protected:
  void TearDown() override { fs::remove(file_); }
  // On a file that says this.
  RanLine show(const std::string& lists, const std::string& options) const {
    std::ofstream(file_) << lists;
    return run_line("show schedule file:" + file_ + " " + options);
  }
  std::string file_ = (fs::temp_directory_path() / ("foreshard-own-" + std::to_string(::getpid()) + ".csv")).string();
};

// F = 1, B = 2, one micro-batch at a time: four units of three each, of which each rank works three for each of two micro-batches.
TEST_F(ShowSchedule, AFileIsDrawn) {
  const RanLine shown = show("0F0,0B0,0F1,0B1\n1F0,1B0,1F1,1B1\n", "--pp 2 --micro-batches 2");
  EXPECT_EQ(shown.code, ExitCode::Ok) << shown.err;
  EXPECT_NE(shown.out.find("r0  0>>>............0<<<<<<<1>>>............1<<<<<<<\n"), std::string::npos) << shown.out;
  EXPECT_NE(shown.out.find("makespan 12, idle 50.00 % of it on average"), std::string::npos) << shown.out;
  // A cell of three actions is as long as these: F 0-1, I of rank 1 2-3, the cell 3-6, then 6-7, 7-8, 8-9, and the rest on rank 0 8-10.
  const RanLine cell = show("0F0 0F1&0I0&0W0 0I1 0W1\n1F0 1I0 1W0 1F1 1I1 1W1\n", "--pp 2 --micro-batches 2");
  EXPECT_NE(cell.out.find("r0: 0F0 0F1&0I0&0W0 0I1 0W1\n"), std::string::npos) << cell.out;
  EXPECT_NE(cell.out.find("makespan 10,"), std::string::npos) << cell.out;
  const RanLine chunks = show("0F0 2F0 2B0 0B0\n1F0 3F0 3B0 1B0\n", "--pp 2 --micro-batches 1 --virtual-stages 2");
  EXPECT_NE(chunks.out.find("2 stages per rank"), std::string::npos) << chunks.err;
}

TEST_F(ShowSchedule, WhatIsNoScheduleOfThisShapeIsRefused) {
  const auto why = [&](const std::string& lists, const std::string& options) {
    const RanLine ran = show(lists, options);
    EXPECT_EQ(ran.code, ExitCode::WrongInput) << lists;
    return ran.err;
  };
  const std::string one = "0F0 0B0\n1F0 1B0\n";
  EXPECT_NE(why(one, "--pp 2 --micro-batches 2").find("1 micro-batch where the strategy has 2"), std::string::npos);
  EXPECT_NE(why(one, "--pp 3 --micro-batches 1").find("2 lists for 3 pipeline ranks"), std::string::npos);
  EXPECT_NE(why("0F0 0X0\n", "--pp 1 --micro-batches 1").find(file_ + ": line 1: found \"0X0\""), std::string::npos);
  EXPECT_NE(why("0F0 0B0 0F1 0B1\n1F1 1F0 1B0 1B1\n", "--pp 2 --micro-batches 2").find("rank 0 is at 0B0 and waits for 1B0"),
            std::string::npos);
  EXPECT_NE(run_line("show schedule file:/none.csv --pp 2 --micro-batches 2").err.find("/none.csv"), std::string::npos);
}

}  // namespace foreshard
