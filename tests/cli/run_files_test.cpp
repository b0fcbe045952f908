// foreshard run with data and checkpoints, and its answers to what is wrong with them.
#include <gtest/gtest.h>

#include <unistd.h>

#include <filesystem>
#include <fstream>

#include "tests/cli/run_line.h"
#include "tests/cli/session.h"

namespace foreshard {
namespace {

namespace fs = std::filesystem;

struct RunFiles : testing::Test {
  void SetUp() override {
    folder = fs::temp_directory_path() / ("foreshard-run-files-" + std::to_string(::getpid()));
    fs::create_directories(folder);
    std::ofstream(path("model.json")) << R"({"model_type": "gpt2", "n_layer": 2, "n_embd": 32, "n_head": 2, "vocab_size": 256,
                                             "n_positions": 16})";
    ASSERT_EQ(lower("--tp 2 --pp 2", "plan.json").code, ExitCode::Ok);
  }
  void TearDown() override { fs::remove_all(folder); }
  std::string path(const std::string& name) const { return (folder / name).string(); }
  RanLine lower(const std::string& split, const std::string& plan) const {
    return run_line("lower --model " + path("model.json") + " --cluster dgx-a100 --dp 1 --global-batch 4 --micro-batch 2 " +
                    "--precision fp64 " + split + " --save-plan " + path(plan));
  }
  RanLine train(const std::string& options, const std::string& plan = "plan.json") const {
    return run_line("run " + path(plan) + " --progress none " + options);
  }
  fs::path folder = {};
};

const std::string kText = std::string(FORESHARD_SOURCE) + "/LICENSE";

// The last line of the text: "loss 5.54 -> 5.50 after 3 steps".
std::string last_loss(const RanLine& ran) {
  const std::size_t arrow = ran.out.find("-> ");
  return arrow == std::string::npos ? ran.out + ran.err : ran.out.substr(arrow + 3, 7);
}

TEST_F(RunFiles, TrainsOnATextAndGoesOnUnderAnotherSplit) {
  ASSERT_EQ(lower("", "one.json").code, ExitCode::Ok);
  const RanLine whole = train("--steps 5 --seed 9 --data " + kText);
  EXPECT_EQ(whole.code, ExitCode::Ok) << whole.err;
  const RanLine first = train("--steps 3 --seed 9 --save " + path("a") + " --save-every 2 --data " + kText);
  EXPECT_EQ(first.code, ExitCode::Ok) << first.err;
  EXPECT_NE(last_loss(first), last_loss(whole));
  const RanLine rest = train("--steps 2 --resume " + path("a") + " --data " + kText, "one.json");
  EXPECT_EQ(last_loss(rest), last_loss(whole)) << rest.out << rest.err;
}

TEST_F(RunFiles, WhatIsWrongIsSaid) {
  std::ofstream(path("short.txt")) << "too short";
  const auto complaint = [&](const std::string& options) {
    const RanLine ran = train(options);
    EXPECT_EQ(ran.code, ExitCode::WrongInput) << options;
    EXPECT_EQ(ran.out, "") << options;
    return ran.err;
  };
  EXPECT_NE(complaint("--ranks 8").find("--ranks: found 8, expected 4, which the plan is for"), std::string::npos);
  EXPECT_NE(complaint("--data " + path("short.txt")).find("found 9 tokens, expected at least 17"), std::string::npos);
  EXPECT_NE(complaint("--data " + path("nothing")).find("No such file"), std::string::npos);
  EXPECT_NE(complaint("--data-format u16").find("--data-format: found no --data"), std::string::npos);
  EXPECT_NE(complaint("--data-format u8 --data " + kText).find("u16"), std::string::npos);
  EXPECT_NE(complaint("--save-every 2").find("--save-every: found no --save"), std::string::npos);
  EXPECT_NE(complaint("--save " + path("no/such/folder")).find("No such file"), std::string::npos);
  EXPECT_NE(complaint("--resume " + path("short.txt")).find("a whole safetensors file"), std::string::npos);
}

// A disk that is full, here a limit on the size of files: whatever is written, the run says which file it was and leaves the one
// that was there.
TEST_F(RunFiles, AFullDiskIsToldAndLeavesWhatWasThere) {
  const auto limited = [&](const std::string& option, const std::string& name) {
    std::ofstream(path(name)) << "what was there";
    const std::string said = run_in_shell(
        "trap '' XFSZ; ulimit -f 4; foreshard run plan.json --progress none --steps 1 " + option + " " + name, folder.string());
    EXPECT_EQ(read_text(path(name)), "what was there") << option;
    EXPECT_EQ(said.find("iteration"), std::string::npos) << said;
    EXPECT_FALSE(fs::exists(path(name + ".part"))) << option;
    return said;
  };
  for (const char* option : {"--save", "--save-result", "--trace"}) {
    const std::string said = limited(option, "there");
    EXPECT_NE(said.find("there"), std::string::npos) << option << ": " << said;
    EXPECT_NE(said.find("File too large"), std::string::npos) << option << ": " << said;
    EXPECT_NE(said.find("[exit "), std::string::npos) << option << ": " << said;
  }
}

}  // namespace
}  // namespace foreshard
