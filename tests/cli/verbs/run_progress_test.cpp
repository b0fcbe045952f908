// run --progress json: what a program reads while a run goes on.
#include <gtest/gtest.h>

#include <filesystem>

#include "core/json/json.h"
#include "tests/cli/run_line.h"

namespace foreshard {

TEST(RunProgress, TellsTheLossOfEveryStepInOrder) {
  const std::string plan = testing::TempDir() + "foreshard_run_progress.plan.json";
  ASSERT_EQ(
      run_line("lower --model toy-matmul --cluster dgx-a100 --gpus 2 --precision fp32 --global-batch 4 --save-plan " + plan)
          .code,
      ExitCode::Ok);
  const RanLine r = run_line("run " + plan + " --steps 3 --json --progress json");
  std::filesystem::remove(plan);
  ASSERT_EQ(r.code, ExitCode::Ok) << r.err;
  const std::vector<JsonReader> steps = JsonReader::parse(r.out, "answer").at("steps").elements();
  ASSERT_EQ(steps.size(), 3u);
  std::istringstream lines(r.err);
  std::size_t told = 0;
  double progress = 0;
  for (std::string line; std::getline(lines, line);) {
    const JsonReader json = JsonReader::parse(line, "line");
    if (json.has("progress")) {
      progress = json.at("progress").as_double();
      continue;
    }
    ASSERT_LT(told, steps.size()) << line;
    EXPECT_EQ(json.at("step").as_int(), static_cast<std::int64_t>(told));
    EXPECT_EQ(json.at("loss").as_double(), steps[told].at("loss").as_double());
    EXPECT_EQ(json.at("time_s").as_double(), steps[told].at("time_s").as_double());
    ++told;
  }
  EXPECT_EQ(told, steps.size());
  EXPECT_EQ(progress, 1);
}

TEST(RunProgress, IsSilentWithoutAsking) {
  const std::string plan = testing::TempDir() + "foreshard_run_silent.plan.json";
  ASSERT_EQ(
      run_line("lower --model toy-matmul --cluster dgx-a100 --gpus 1 --precision fp32 --global-batch 4 --save-plan " + plan)
          .code,
      ExitCode::Ok);
  const RanLine r = run_line("run " + plan + " --steps 2 --json");
  std::filesystem::remove(plan);
  EXPECT_EQ(r.code, ExitCode::Ok);
  EXPECT_EQ(r.err, "");
}

}  // namespace foreshard
