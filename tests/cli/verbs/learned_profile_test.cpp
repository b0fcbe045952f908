// Learning from a table of runs on the command line: scores, the profile that comes of it, and who takes or refuses it.
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>

#include "core/json/json.h"
#include "core/json/json_edit.h"
#include "tests/cli/run_line.h"
#include "tests/how_many.h"
#include "validation/measured.h"

namespace foreshard::learned_profile_test {
namespace {

const std::string kTable = std::string(FORESHARD_SOURCE) + "/data/measured/vtrain_single.csv";

// What cannot be had from datasheets (docs/validation.md, "Regret") can be had from a user's other runs: of the 100 sweeps of this source the
// plan that is chosen by runs of other sweeps, or of other models, takes at most 2 % longer than the best, in their mean.
TEST(LearnedRuns, ChooseWithinTwoPercentOfTheBest) {
  if (!all_of_it()) GTEST_SKIP() << "two minutes of processor time: scripts/long_checks.sh";
  const RanLine ran = run_words({"validate", kTable, "--learn", "--json"});
  ASSERT_EQ(ran.code, ExitCode::Ok) << ran.err;
  const JsonReader source = JsonReader::parse(ran.out, "out").at("learning").at(std::size_t{0});
  EXPECT_GE(source.at("sweeps").as_int(), 100);
  EXPECT_LE(source.at("sweep_left_out").at("regret").as_double(), 0.02);
  EXPECT_LE(source.at("model_left_out").at("regret").as_double(), 0.02);
  EXPECT_LT(source.at("sweep_left_out").at("mean").as_double(), source.at("without").at("mean").as_double() / 3);
}

class LearnedFiles : public testing::Test {
 protected:
  void SetUp() override {
    folder_ = std::filesystem::temp_directory_path() / ("foreshard-learned-" + std::to_string(::getpid()));
    std::filesystem::create_directories(folder_);
    std::istringstream in(read_file(kTable));
    std::string line, text;
    std::getline(in, header_);
    header_ += "\n", text = header_;
    int taken = 0;
    for (const MeasuredRow& row : load_measured(kTable)) {  // a line each
      std::getline(in, line);
      if (taken == 40 || row.text("micro_batch") != "1" || row.number("tp") > 2) continue;
      text += line + "\n", ++taken;
    }
    write_file(at("runs.csv"), text);
  }
  void TearDown() override { std::filesystem::remove_all(folder_); }
  std::string at(const std::string& name) const { return (folder_ / name).string(); }
  std::string calibrated() {
    const RanLine ran = run_words({"calibrate", "--runs", at("runs.csv"), "--save-profile", at("p.json")});
    EXPECT_EQ(ran.code, ExitCode::Ok) << ran.err;
    EXPECT_NE(ran.out.find("40 runs on a100-80, 8 per node"), std::string::npos) << ran.out;
    return at("p.json");
  }
  std::filesystem::path folder_;
  std::string header_;
};

const std::vector<std::string> kJob = {"--model", "gpt2-355m",      "--gpus", "8",     "--tp", "2",           "--micro-batch",
                                       "1",       "--global-batch", "32",     "--seq", "1024", "--precision", "fp16"};

std::vector<std::string> job(const std::string& verb, const std::string& cluster, std::vector<std::string> more) {
  std::vector<std::string> words = {verb, "--cluster", cluster};
  words.insert(words.end(), kJob.begin(), kJob.end());
  words.insert(words.end(), more.begin(), more.end());
  return words;
}

TEST_F(LearnedFiles, AProfileIsLearnedAndTaken) {
  const std::string profile = calibrated();
  const std::vector<std::string> megatron = {"--framework", "megatron-deepspeed", "--json"};
  const RanLine plain = run_words(job("simulate", "dgx-a100", megatron));
  ASSERT_EQ(plain.code, ExitCode::Ok) << plain.err;
  const RanLine learned =
      run_words(job("simulate", "dgx-a100", {"--framework", "megatron-deepspeed", "--json", "--profile", profile}));
  ASSERT_EQ(learned.code, ExitCode::Ok) << learned.err;
  const auto width = [](const std::string& text) {
    const JsonReader json = JsonReader::parse(text, "out");
    const JsonReader interval = json.at("prediction_interval");
    return std::log(interval.at("high_s").as_double() / interval.at("low_s").as_double());
  };
  EXPECT_LT(width(learned.out), width(plain.out));
  EXPECT_NE(JsonReader::parse(learned.out, "out").at("iteration_time_s").as_double(),
            JsonReader::parse(plain.out, "out").at("iteration_time_s").as_double());
}

// What search screens, refines and simulates are the same learned costs. The closed form that screens is 4 to 5 % below the replay here.
TEST_F(LearnedFiles, ScreenRefineAndSimulateAgree) {
  const RanLine ran = run_words(job("search", "dgx-a100",
                                    {"--framework", "megatron-deepspeed", "--json", "--top", "2", "--fix", "pp=1", "--profile",
                                     calibrated(), "--progress", "none"}));
  ASSERT_EQ(ran.code, ExitCode::Ok) << ran.err;
  const JsonReader best = JsonReader::parse(ran.out, "out").at("results").at(std::size_t{0});
  const double refined = best.at("estimate").at("time_s").as_double();
  EXPECT_NEAR(best.at("simulated").as_double() / refined, 1, 0.005);
  EXPECT_NEAR(best.at("estimate").at("screened_s").as_double() / refined, 1, 0.06);
}

TEST_F(LearnedFiles, OtherMachinesAndFrameworksAreRefused) {
  const std::string profile = calibrated();
  const RanLine device = run_words(job("simulate", "dgx-h100", {"--framework", "megatron-deepspeed", "--profile", profile}));
  EXPECT_EQ(device.code, ExitCode::WrongInput);
  EXPECT_NE(device.err.find("device: found \"a100-80\", expected a device of the cluster dgx-h100"), std::string::npos)
      << device.err;
  const RanLine framework = run_words(job("simulate", "dgx-a100", {"--framework", "nemo", "--profile", profile}));
  EXPECT_EQ(framework.code, ExitCode::WrongInput);
  EXPECT_NE(framework.err.find("learned: found runs of megatron-deepspeed, expected runs of the strategy's framework, nemo"),
            std::string::npos)
      << framework.err;
}

TEST_F(LearnedFiles, OtherLinksAreTold) {
  const std::string profile = calibrated();
  write_file(profile, with_json_value(read_file(profile), "learned.cluster", "\"a100-80 on a string\"", "test"));
  const RanLine ran = run_words(job("simulate", "dgx-a100", {"--framework", "megatron-deepspeed", "--profile", profile}));
  EXPECT_EQ(ran.code, ExitCode::Ok);
  EXPECT_NE(ran.err.find("learned from runs on a100-80 on a string; this is a100-80, 8 per node"), std::string::npos)
      << ran.err;
}

TEST_F(LearnedFiles, WrongTablesAreTold) {
  const auto message = [&](const std::string& text) {
    write_file(at("bad.csv"), text);
    const RanLine ran = run_words({"calibrate", "--runs", at("bad.csv"), "--save-profile", at("bad.json")});
    EXPECT_EQ(ran.code, ExitCode::WrongInput);
    return ran.err;
  };
  EXPECT_NE(message(header_).find("bad.csv: rows: found 0 of which none"), std::string::npos);
  std::string two = read_file(at("runs.csv"));
  const std::size_t line = two.rfind('\n', two.size() - 2) + 1, gpu = two.find("A100 (memory", line);
  ASSERT_NE(gpu, std::string::npos);
  two.replace(gpu, 4, "H100");
  const std::string other = message(two);
  EXPECT_NE(other.find("bad.csv:41: gpu: found \"H100 (memory size"), std::string::npos) << other;
  EXPECT_NE(other.find("expected the GPU of the rows before, a100-80: a profile is about one"), std::string::npos) << other;
  std::string value = read_file(at("runs.csv"));
  value.replace(value.find("iter_time_s,") + 12, 3, "abc");
  EXPECT_NE(message(value).find("bad.csv:2: measured_value: found \"abc"), std::string::npos);
}

TEST_F(LearnedFiles, ValidateSaysWhatLearningIsWorth) {
  const RanLine ran = run_words({"validate", at("runs.csv"), "--learn", "--json"});
  ASSERT_EQ(ran.code, ExitCode::Ok) << ran.err;
  const JsonReader cell = JsonReader::parse(ran.out, "out").at("learning").at(std::size_t{0});
  EXPECT_EQ(cell.at("rows").as_int(), 40);
  EXPECT_EQ(cell.at("sweep_left_out").at("learned").as_int(), 40);
  EXPECT_LT(cell.at("sweep_left_out").at("median").as_double(), cell.at("without").at("median").as_double());
  const RanLine plain = run_words({"validate", at("runs.csv"), "--json"});
  EXPECT_EQ(plain.out.find("learning"), std::string::npos);
}

}  // namespace
}  // namespace foreshard::learned_profile_test
