// run, compare and calibrate from the command line.
#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>

#include "cli/job/profile.h"
#include "core/json/json.h"
#include "core/plan/plan.h"
#include "core/profile/machine_profile.h"
#include "core/result/result.h"
#include "tests/cli/run_line.h"

namespace foreshard {

namespace fs = std::filesystem;

class RunVerb : public testing::Test {
 protected:
  void SetUp() override {
    folder_ = fs::temp_directory_path() / ("foreshard-run-" + std::to_string(::getpid()));
    fs::create_directories(folder_);
  }
  void TearDown() override { fs::remove_all(folder_); }
  std::string file(const std::string& name) const { return (folder_ / name).string(); }
  static std::string small() {
    return "--model gpt2-124m --set model.n_layer=2 --set model.n_embd=32 --set model.n_head=4 --set model.vocab_size=64 "
           "--set model.n_positions=16 --global-batch 4 --precision fp32 ";
  }
  static JsonReader json_of(const RanLine& ran) {
    EXPECT_EQ(ran.code, ExitCode::Ok) << ran.err;
    return JsonReader::parse(ran.out, "out");
  }
  fs::path folder_;
};

// One stream: what is alive together is told by the order alone, so simulated and measured peaks are the same bytes in every
// category, and so is what run prints.
TEST_F(RunVerb, PeakMemoryIsTheSimulatorsToTheByte) {
  for (const std::string options :
       {"--micro-batch 2 ", "--micro-batch 1 --recompute full ", "--micro-batch 1 --optimizer sgd "}) {
    ASSERT_EQ(run_line("simulate --cluster dgx-a100 --gpus 1 --folding none --granularity op " + small() + options +
                       "--save-plan " + file("p.plan.json") + " --save-result " + file("a.result"))
                  .code,
              ExitCode::Ok);
    const JsonReader ran =
        json_of(run_line("run " + file("p.plan.json") + " --steps 2 --json --patience 60 --save-result " + file("b.result")));
    const JsonReader both = json_of(run_line("compare " + file("a.result") + " " + file("b.result") + " --json"));
    EXPECT_EQ(both.at("memory").at("signed_error").as_double(), 0);
    EXPECT_EQ(both.at("memory").at("measured").as_int(), ran.at("peak_memory_bytes").as_int());
    std::int64_t sum = 0;
    for (const auto& [category, bytes] : ran.at("memory_by_category").members()) {
      sum += bytes.as_int();
      EXPECT_EQ(both.at("memory_by_category").at(category).at("predicted").as_int(), bytes.as_int()) << category;
    }
    EXPECT_EQ(sum, ran.at("peak_memory_bytes").as_int());
    EXPECT_EQ(both.at("without_twin").as_int(), 0);
  }
}

TEST_F(RunVerb, JsonHasItsKeys) {
  ASSERT_EQ(run_line("lower --cluster dgx-a100 --gpus 2 --pp 2 " + small() + "--save-plan " + file("p.plan.json")).code,
            ExitCode::Ok);
  for (const std::string mode : {"wall", "emulated"}) {
    const JsonReader json = json_of(run_line("run " + file("p.plan.json") + " --steps 2 --json --patience 60 --time " + mode));
    EXPECT_EQ(json.at("plan_hash").as_string(), program_hash(load_plan(file("p.plan.json"))));
    EXPECT_EQ(json.at("mode").as_string(), mode);
    EXPECT_GT(json.at("iteration_time_s").as_double(), 0);
    EXPECT_EQ(json.at("steps").size(), 2U);
    for (const JsonReader& step : json.at("steps").elements()) {
      EXPECT_NEAR(step.at("loss").as_double(), 4.16, 0.5);  // ln 64: nothing is known of the next token
      EXPECT_GT(step.at("time_s").as_double(), 0);
    }
    EXPECT_GE(json.at("arena_bytes").as_int(), json.at("peak_memory_bytes").as_int());
  }
}

TEST_F(RunVerb, ADynamicLossScaleIsTold) {
  ASSERT_EQ(
      run_line("lower --cluster dgx-a100 --gpus 2 --dp 2 --loss-scale 0 " + small() + "--save-plan " + file("s.plan.json"))
          .code,
      ExitCode::Ok);
  const JsonReader json = json_of(run_line("run " + file("s.plan.json") + " --steps 2 --json --patience 60"));
  for (const JsonReader& step : json.at("steps").elements()) {
    EXPECT_EQ(step.at("loss_scale").as_double(), 65536);
    EXPECT_FALSE(step.at("skipped").as_bool());
  }
  EXPECT_NE(
      run_line("run " + file("s.plan.json") + " --steps 2 --patience 60").out.find("loss scale 65536, 0 of 2 steps skipped"),
      std::string::npos);
}

TEST_F(RunVerb, ResultsOfOtherPlansAreNotCompared) {
  for (const std::string name : {"a", "b"})
    ASSERT_EQ(run_line("simulate --cluster dgx-a100 --gpus 1 " + small() + (name == "a" ? "" : "--micro-batch 2 ") +
                       "--save-result " + file(name + ".result"))
                  .code,
              ExitCode::Ok);
  const RanLine refused = run_line("compare " + file("a.result") + " " + file("b.result"));
  EXPECT_EQ(refused.code, ExitCode::WrongInput);
  EXPECT_TRUE(refused.err.starts_with("foreshard: " + file("b.result") + ": plan_hash: found ")) << refused.err;
  EXPECT_EQ(run_line("compare " + file("a.result") + " " + file("none.result")).code, ExitCode::WrongInput);
}

// A run on the processor of a plan for a GPU: the times are of different devices.
TEST_F(RunVerb, AMeasurementSaysItsDevice) {
  ASSERT_EQ(run_line("simulate --cluster dgx-a100 --gpus 1 " + small() + "--save-plan " + file("p.plan.json") +
                     " --save-result " + file("p.result"))
                .code,
            ExitCode::Ok);
  ASSERT_EQ(run_line("run " + file("p.plan.json") + " --steps 1 --patience 60 --save-result " + file("m.result")).code,
            ExitCode::Ok);
  const Result measured = load_result(file("m.result"));
  EXPECT_EQ(measured.measured_on.kind, "host");
  EXPECT_NE(measured.measured_on.words.find(" cores"), std::string::npos) << measured.measured_on.words;
  const RanLine said = run_line("compare " + file("p.result") + " " + file("m.result"));
  EXPECT_NE(said.out.find("A is simulated for a100-80, B is measured on " + measured.measured_on.words), std::string::npos)
      << said.out;
  EXPECT_EQ(said.out.find(" points"), std::string::npos) << said.out;
  const JsonReader json = json_of(run_line("compare " + file("p.result") + " " + file("m.result") + " --json"));
  EXPECT_FALSE(json.at("devices").at("same").as_bool());
  EXPECT_FALSE(json.at("iteration_time").at("signed_error").is_number());
  EXPECT_EQ(json.at("memory").at("signed_error").as_double(), 0);
}

// The profile is used where its device is, and refused where it is not.
TEST_F(RunVerb, AProfileReplacesCostsOfItsDevice) {
  MachineProfile profile{.device = "a100-80", .machine = "test", .link_latency = {1e-6}, .link_bandwidth = {1e9}};
  profile.ops = {{.op = "matmul", .dtype = DType::F32, .variant = "1", .samples = {{{1, 64, 64, 64}, {49152}, {0.5}}}}};
  std::ofstream(file("p.json")) << to_json(profile);
  const std::string job = "simulate --cluster dgx-a100 --gpus 1 --json " + small();
  const double plain = json_of(run_line(job)).at("iteration_time_s").as_double();
  // 64^3 multiply-adds take half a second, and every forward product of a layer is that slow: 16 rows x 4 samples x 32 x 96 (qkv),
  // 32 x 32, 32 x 128 twice, two layers: 2 x 786432 / 64^3 x 0.5 s = 3 s.
  const double slow = json_of(run_line(job + "--profile " + file("p.json"))).at("iteration_time_s").as_double();
  EXPECT_LT(plain, 0.1);
  EXPECT_GT(slow, 3);
  ASSERT_EQ(run_line("lower --cluster dgx-a100 --gpus 1 " + small() + "--save-plan " + file("p.plan.json")).code, ExitCode::Ok);
  EXPECT_EQ(json_of(run_line("simulate --json --plan " + file("p.plan.json") + " --profile " + file("p.json")))
                .at("iteration_time_s")
                .as_double(),
            slow);
  const RanLine refused = run_line("simulate --cluster dgx-h100 --gpus 1 " + small() + "--profile " + file("p.json"));
  EXPECT_EQ(refused.code, ExitCode::WrongInput);
  EXPECT_NE(refused.err.find("device: found \"a100-80\", expected a device of the cluster dgx-h100"), std::string::npos)
      << refused.err;
}

// 2 x 8 x 16 x 32 = 8192 operations in 1 us are 8.192 GFLOP/s, 2 x 4 x 8 x 8 x 4 = 2048 in 1 us 2.048.
TEST_F(RunVerb, AProfileSaysWhatItsProductsDifferIn) {
  MachineProfile profile{.device = "host", .machine = "test"};
  profile.ops = {{.op = "matmul", .variant = "1", .samples = {{{1, 8, 16, 32}, {}, {1e-6}}}},
                 {.op = "scores", .variant = "1 causal", .samples = {{{4, 8, 8, 4}, {}, {1e-6}}}},
                 {.op = "matmul", .variant = "1 first_token", .samples = {{{4, 8, 8, 4}, {}, {2e-6}}}}};
  const std::string text = profile_text(profile);
  for (const char* row :
       {"fp32    linear layer                        8.2 ", "fp32    attention scores, causal              2 ",
        "fp32    linear layer, first token             1 "})
    EXPECT_NE(text.find(row), std::string::npos) << text;
  EXPECT_EQ(text.find("8.2"), text.rfind("8.2")) << text;
}

TEST_F(RunVerb, OptionsWithoutEffectAreRefused) {
  ASSERT_EQ(run_line("lower --cluster dgx-a100 --gpus 1 " + small() + "--save-plan " + file("p.plan.json")).code, ExitCode::Ok);
  const auto complaint = [&](const std::string& line) {
    const RanLine ran = run_line(line);
    EXPECT_EQ(ran.code, ExitCode::WrongInput) << line;
    return ran.err;
  };
  const std::string run = "run " + file("p.plan.json") + " --steps 1 ";
  EXPECT_EQ(complaint(run + "--link-latency 5"),
            "foreshard: command line: --link-latency: found 5, expected --time emulated: else it has no effect\n");
  EXPECT_NE(complaint(run + "--profile host.json").find("--profile: found host.json, expected --time emulated"),
            std::string::npos);
  const std::string calibrate =
      "calibrate --quick --save-profile " + file("c.json") + " --save-cluster " + file("h.json") + " ";
  EXPECT_NE(complaint(calibrate + "--link-class node").find("--link-class: found node, expected --collectives"),
            std::string::npos);
  EXPECT_NE(complaint(calibrate + "--name x").find("--name: found x, expected --device cuda"), std::string::npos);
  EXPECT_NE(complaint("calibrate --collectives --steps 3").find("--steps: found 3, expected no --collectives"),
            std::string::npos);
  EXPECT_NE(complaint("calibrate --runs x.csv --quick").find("--quick: found it, expected no --runs"), std::string::npos);
  EXPECT_FALSE(fs::exists(file("c.json")));
}

// A training of days does not end with a file that cannot be made.
TEST_F(RunVerb, PlacesOfFilesAreLookedAtFirst) {
  ASSERT_EQ(run_line("lower --cluster dgx-a100 --gpus 1 " + small() + "--save-plan " + file("p.plan.json")).code, ExitCode::Ok);
  for (const std::string option : {"--trace", "--save-result"}) {
    const RanLine ran =
        run_line("run " + file("p.plan.json") + " --steps 1 --progress json " + option + " " + file("no/such/folder"));
    EXPECT_EQ(ran.code, ExitCode::WrongInput);
    EXPECT_NE(ran.err.find("no/such/folder: found No such file or directory, expected a file that can be written"),
              std::string::npos)
        << ran.err;
    EXPECT_EQ(ran.err.find("\"step\""), std::string::npos) << option << " is looked at after the training";
  }
}

TEST_F(RunVerb, CalibrateWritesAProfileAndAClusterThatFitEachOther) {
  const RanLine ran = run_line("calibrate --quick --steps 2 --largest-product 16 --precision fp32 --ranks 4 --save-profile " +
                               file("host.json") + " --save-cluster " + file("this-host.json"));
  ASSERT_EQ(ran.code, ExitCode::Ok) << ran.err;
  EXPECT_GT(load_machine_profile(file("host.json")).ops.size(), 30U);
  EXPECT_EQ(
      run_line("simulate --cluster " + file("this-host.json") + " --profile " + file("host.json") + " --tp 2 --pp 2 " + small())
          .code,
      ExitCode::Ok);
  const RanLine wrong = run_line("calibrate --precision fp32,fp31");
  EXPECT_EQ(wrong.err,
            "foreshard: command line: --precision: found \"fp31\", expected some of fp64, fp32, bf16, fp16, with commas "
            "between them\n");
}

}  // namespace foreshard
