// A small plan in a folder of its own, and lines that start it in several real processes.
#pragma once

#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <string>
#include <vector>

#include "core/json/json.h"
#include "exec/mesh/socket.h"
#include "tests/cli/run_line.h"
#include "tests/cli/session.h"

namespace foreshard {

namespace fs = std::filesystem;

class Processes : public testing::Test {
 protected:
  void SetUp() override {
    folder_ = fs::temp_directory_path() / ("foreshard-processes-" + std::to_string(::getpid()));
    fs::create_directories(folder_);
    const RanLine made = run_line(
        "lower --model gpt2-124m --cluster dgx-a100 --set model.n_layer=2 --set model.n_embd=32 --set model.n_head=4 "
        "--set model.vocab_size=64 --set model.n_positions=16 --tp 2 --pp 2 --zero 1 --precision fp64 " +
        split() + " --save-plan " + (folder_ / "p.plan.json").string());
    ASSERT_EQ(made.code, ExitCode::Ok) << made.err;
  }
  virtual std::string split() const { return "--gpus 8 --dp 2 --global-batch 8"; }
  void TearDown() override { fs::remove_all(folder_); }

  std::string shell(const std::string& script) const { return run_in_shell(script, folder_.string()); }
  std::string file(const std::string& name) const { return read_text((folder_ / name).string()); }
  static std::string port() { return std::to_string(ListeningSocket(0).port()); }
  // The losses that a JSON output tells.
  static std::vector<double> losses(const std::string& json) {
    std::vector<double> all;
    for (const JsonReader& step : JsonReader::parse(json, "out").at("steps").elements())
      all.push_back(step.at("loss").as_double());
    return all;
  }
  std::vector<double> alone() const {
    return losses(shell("foreshard run p.plan.json --steps 3 --json --launcher none --patience 60"));
  }

  fs::path folder_;
};

// `number`, `count`: the launcher's variables.
inline std::string start(const std::string& number, const std::string& count, int processes, const std::string& port,
                         const std::string& options) {
  return "for r in $(seq 0 " + std::to_string(processes - 1) + "); do env " + number + "=$r " + count + "=" +
         std::to_string(processes) + " MASTER_PORT=" + port + " foreshard run p.plan.json --patience 60 --rendezvous 60 " +
         options + " >out.$r 2>err.$r & eval pid$r=$!; done\n";
}

}  // namespace foreshard
