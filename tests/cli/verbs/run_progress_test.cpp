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

// Two ranks share 32 experts of tiny layers; every token of the 4 samples chooses 8 of them in each layer. The loads of the last step add up
// to the choices, and simulate takes them.
TEST(RunProgress, TellsHowTokensChoseExperts) {
  const std::string plan = testing::TempDir() + "foreshard_run_experts.plan.json", loads = plan + ".loads.json";
  const std::string job =
      "--model granite-3.1-1b-a400m --set model.num_hidden_layers=2 --set model.hidden_size=32 --set "
      "model.num_attention_heads=4 "
      "--set model.num_key_value_heads=2 --set model.intermediate_size=16 --set model.vocab_size=64 --seq 16 --cluster "
      "dgx-a100 "
      "--gpus 2 --precision fp32 --global-batch 4 --ep 2 ";
  ASSERT_EQ(run_line("lower " + job + "--expert-load worst --save-plan " + plan).code, ExitCode::Ok);
  const RanLine r = run_line("run " + plan + " --steps 2 --json --progress json --patience 60");
  ASSERT_EQ(r.code, ExitCode::Ok) << r.err;
  const JsonReader answer = JsonReader::parse(r.out, "answer");
  double sum = 0;
  std::string layers;
  for (const JsonReader& layer : answer.at("expert_loads").elements()) {
    std::string list;
    EXPECT_EQ(layer.size(), 32U);
    for (const JsonReader& load : layer.elements())
      sum += load.as_double(), list += (list.empty() ? "" : ",") + std::to_string(load.as_int());
    layers += (layers.empty() ? "[" : ",[") + list + "]";
  }
  EXPECT_EQ(sum, 2 * 4 * 16 * 8);
  const JsonReader last = answer.at("steps").at(std::size_t{1}).at("experts");
  EXPECT_EQ(last.at("choices").as_double(), sum);
  EXPECT_EQ(last.at("dropped").as_double(), 0);
  EXPECT_GT(last.at("most_loaded").as_double(), 1);
  EXPECT_NE(r.err.find("\"experts\":"), std::string::npos) << r.err;
  write_file(loads, "{\"format\": \"foreshard-expert-loads\", \"layers\": [" + layers + "]}");
  const RanLine simulated = run_line("simulate " + job + "--ignore-memory --expert-load file:" + loads);
  EXPECT_EQ(simulated.code, ExitCode::Ok) << simulated.err;
  EXPECT_NE(simulated.out.find("expert load measured"), std::string::npos) << simulated.out;
  const RanLine text = run_line("run " + plan + " --steps 1 --patience 60");
  EXPECT_NE(text.out.find("experts    most chosen expert "), std::string::npos) << text.out;
  EXPECT_NE(text.out.find(", 0 of 1,024 choices dropped in the last step"), std::string::npos) << text.out;
  std::filesystem::remove(plan), std::filesystem::remove(loads);
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
