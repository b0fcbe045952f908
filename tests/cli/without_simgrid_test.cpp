// The program without the SimGrid module (sim/simgrid_module.h): the light clock does its work, and what needs SimGrid says so.
#include <gtest/gtest.h>

#include "core/json/json.h"
#include "tests/cli/run_line.h"
#include "tests/cli/session.h"

namespace foreshard::without_simgrid_test {

static const std::string kJob = "--model gpt2-124m --cluster dgx-a100 --seq 256 --global-batch 16 --tp 2 --pp 2 ";
static std::string twin(const std::string& words) { return run_in_shell(FORESHARD_TWIN_PROGRAM " " + words, "."); }

static void expect_missing(const std::string& words, const std::string& instead) {
  const std::string said = twin(words);
  const std::string verb = words.substr(0, words.find(' '));
  EXPECT_EQ(said.find("foreshard: " + verb + " failed: libforeshard_simgrid.so is neither beside "), 0) << said;
  EXPECT_NE(said.find("; cmake -DFORESHARD_SIMGRID=ON builds it; " + instead + "\n[exit 3]\n"), std::string::npos) << said;
}

TEST(WithoutSimgrid, SimulateAndSearchSayWhatIsMissing) {
  expect_missing("simulate " + kJob, "--clock light gives the same times");
  const std::string search = "search --model gpt2-124m --cluster dgx-a100 --gpus 2 --global-batch 16 --seq 256 ";
  expect_missing(search, "--top 0 ranks on the light clock alone");
  EXPECT_NE(twin(search + "--top 0").find("best by time"), std::string::npos);
}

TEST(WithoutSimgrid, TheLightClockGivesTheTimeOfSimgrid) {
  const RanLine simulated = run_line("simulate --json " + kJob);
  ASSERT_EQ(simulated.code, ExitCode::Ok) << simulated.err;
  const double time = JsonReader::parse(simulated.out, "simgrid").at("iteration_time_s").as_double();
  const std::string light = twin("simulate --json --clock light " + kJob);
  EXPECT_NEAR(JsonReader::parse(light, "light").at("iteration_time_s").as_double(), time, 1e-9 * time) << light;
}

}  // namespace foreshard::without_simgrid_test
