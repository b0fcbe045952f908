// bench/gpu: every part of run.sh on the program that pack.sh packs, with the twins of a GPU and of NCCL; then the page that report.py makes of it.
// PyTorch and compute-sanitizer are not there, and the page says so.
#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <map>

#include "core/json/json.h"
#include "tests/cli/session.h"
#include "tests/how_many.h"

namespace foreshard {

namespace fs = std::filesystem;

class GpuBench : public testing::Test {
 protected:
  void SetUp() override {
    folder_ = fs::temp_directory_path() / ("foreshard-gpu-bench-" + std::to_string(::getpid()));
    fs::create_directories(folder_);
  }
  void TearDown() override { fs::remove_all(folder_); }
  std::string shell(const std::string& line) const { return run_in_shell(line, folder_.string()); }
  std::string run(const std::string& environment) const {
    return shell("env SIZE=tiny GPU_NAME=h100-80 TWIN_GPUS=1 TWIN_MEMORY=640 FORESHARD_DATA=" FORESHARD_SOURCE
                 " FORESHARD_NCCL=" FORESHARD_NCCL_TWIN " PROGRAM=" FORESHARD_TWIN_PROGRAM " " +
                 environment + " " FORESHARD_SOURCE "/bench/gpu/run.sh out");
  }
  std::string page() const { return shell("python3 " FORESHARD_SOURCE "/bench/gpu/report.py out/results.jsonl"); }
  // What a part found, by name; its state where that is not "ok".
  std::map<std::string, std::string> states() const {
    std::map<std::string, std::string> all;
    std::istringstream lines(read_text((folder_ / "out/results.jsonl").string()));
    for (std::string line; std::getline(lines, line);) {
      const JsonReader entry = JsonReader::parse(line, "results.jsonl");
      all[entry.at("part").as_string()] = entry.at("state").as_string();
    }
    return all;
  }

  fs::path folder_;
};

TEST_F(GpuBench, EveryPartRunsAndThePageHasIt) {
  if (!all_of_it()) GTEST_SKIP() << "takes long: scripts/long_checks.sh tests";
  const std::string said = run("TWIN_NCCL_VERSION=23007");
  std::map<std::string, std::string> expected;
  for (const char* part :
       {"machine", "selftest", "train", "losses", "calibrate", "predict", "sanitizer", "kernels", "graphs", "nccl"})
    expected[part] = "ok";
  EXPECT_EQ(states(), expected) << said;
  for (const char* file : {"cuda.profile.json.gz", "logs.tar.gz", "results.jsonl"})
    EXPECT_TRUE(fs::exists(folder_ / "out" / file)) << file;
  const std::string text = page();
  for (const char* words :
       {"Sizes of a test, not of a measurement", " comparisons with the host, 0 wrong", "| foreshard | ",
        "| foreshard --any-order | ", "| 3 | 4.", "| `--dp 8 --zero 3` | ", "| attention | forward | 2 causal | ", "| with | ",
        "Mean of the errors' sizes: ", "- two ranks on one GPU: NCCL 2.30.7, 2 ranks: 56 sums and messages compared, 0 wrong\n",
        "PyTorch with CUDA cannot be imported here", "no compute-sanitizer here", "link               "})
    EXPECT_NE(text.find(words), std::string::npos) << words << "\n" << text;
  EXPECT_EQ(text.find("did not come to it"), std::string::npos) << text;
  EXPECT_EQ(text.find("failed"), std::string::npos) << text;  // of the strategies, too
  EXPECT_EQ(text.find("written: "), std::string::npos) << "a path on the other machine\n" << text;
}

TEST_F(GpuBench, AMachineWithoutNcclSaysSo) {
  const std::string said = run("PARTS=nccl FORESHARD_NCCL=/nowhere/libnccl.so.2");
  EXPECT_EQ(states()["nccl"], "ok") << said;
  EXPECT_NE(page().find("- two ranks on one GPU: there is no NCCL here"), std::string::npos) << page();
}

// A part that hangs ends at its limit, one that fails says why, and what there is stays when somebody ends the script.
TEST_F(GpuBench, WhatIsThereIsKept) {
  const std::string wrong = run("PARTS='kernels nonsense' ");
  EXPECT_NE(states()["kernels"].find("failed: "), std::string::npos) << wrong;
  EXPECT_NE(states()["kernels"].find("cuda.profile.json is not there: an earlier part makes it"), std::string::npos) << wrong;
  EXPECT_NE(states()["nonsense"].find("failed: no part nonsense"), std::string::npos) << wrong;

  // A program that does not end: the script is ended in its first part, and nothing of it is left; or the part's time limit comes.
  shell("printf '#!/bin/sh\\ncase \"$1\" in show) exec " FORESHARD_TWIN_PROGRAM
        " \"$@\";; selftest) echo $$ >'$PWD'/pid; exec sleep 1000;; esac\\nexit 3\\n' >slow; chmod +x slow");
  const std::string slow = "env SIZE=tiny FORESHARD_DATA=" FORESHARD_SOURCE " PROGRAM=./slow ",
                    script = " " FORESHARD_SOURCE "/bench/gpu/run.sh out";
  const std::string ended = shell(slow + "PARTS=selftest" + script +
                                  " & until [ -s pid ]; do sleep 0.1; done; kill $!; wait $!; echo code $?; "
                                  "for i in $(seq 100); do kill -0 $(cat pid) 2>/dev/null || break; sleep 0.1; done; kill -0 "
                                  "$(cat pid) 2>/dev/null || echo nobody");
  EXPECT_NE(ended.find("code 143"), std::string::npos) << ended;
  EXPECT_NE(ended.find("nobody"), std::string::npos) << ended;
  EXPECT_EQ(states(), (std::map<std::string, std::string>{{"machine", "ok"}})) << ended;
  EXPECT_TRUE(fs::exists(folder_ / "out/logs.tar.gz"));
  const std::string limited = shell(slow + "SECONDS_IN_ALL=8 PARTS='selftest train'" + script);
  EXPECT_TRUE(states()["selftest"].starts_with("time limit of ")) << limited;
  EXPECT_EQ(states()["train"], "no time left") << limited;
}

// A driver that does not answer takes its share of the time, and no page.
TEST_F(GpuBench, AMachineThatDoesNotAnswerIsLeftOut) {
  shell("printf '#!/bin/sh\ncase \"$1\" in show) exec " FORESHARD_TWIN_PROGRAM
        " \"$@\";; doctor) exec sleep 1000;; esac\nexit 3\n' >slow; chmod +x slow");
  const std::string said = shell("env SIZE=tiny GPU_NAME=h100-80 FORESHARD_DATA=" FORESHARD_SOURCE
                                 " PROGRAM=./slow SECONDS_IN_ALL=4 PARTS=selftest " FORESHARD_SOURCE "/bench/gpu/run.sh out");
  EXPECT_TRUE(states()["machine"].starts_with("time limit of ")) << said;
  EXPECT_EQ(states()["selftest"], "no time left") << said;
  const std::string text = page();
  EXPECT_NE(text.find("## The machine\n\n**time limit of "), std::string::npos) << text;
}

// The table of docs/cuda.md is what the model says of the plan that is lowered today.
TEST_F(GpuBench, TheExpectedTimesAreThoseOfThePlan) {
  shell(
      "foreshard lower --model gpt2-124m --set model.n_layer=24 --set model.n_embd=1792 --set model.n_head=14 --set "
      "model.n_positions=2048 "
      "--set model.vocab_size=50304 --seq 2048 --cluster dgx-h100 --gpus 1 --precision bf16 --attention flash --micro-batch 4 "
      "--global-batch 8 "
      "--save-plan 1b.plan.json");
  const std::string table = shell("python3 " FORESHARD_SOURCE "/bench/gpu/expected_mfu.py 1b.plan.json");
  EXPECT_TRUE(table.starts_with("| | epilogues | products |")) << table;
  EXPECT_NE(read_text(FORESHARD_SOURCE "/docs/cuda.md").find(table), std::string::npos) << table;
}

// Where PyTorch is: throughput, MFU, memory and both loss curves side by side. 8 tokens and 4e12 FLOPs a step, a peak of 1e14 FLOP/s.
TEST_F(GpuBench, ThePageSetsPyTorchBeside) {
  shell("mkdir out");
  std::ofstream(folder_ / "out/results.jsonl")
      << R"({"part": "machine", "state": "ok", "seconds": 1, "data": {"commit": "abc", "size": "full", "peaks": {"bf16": 1e14}}})"
         "\n"
         R"({"part": "train", "state": "ok", "seconds": 9, "data": {"model": {"layers": 1, "hidden": 2, "heads": 1, "sequence": 4,)"
         R"( "vocabulary": 8, "micro_batch": 1, "microbatches": 2}, "tokens_per_step": 8, "flops": 4e12, "flops_causal": 3e12,)"
         R"( "predicted_s": 0.09, "predicted_memory_bytes": 1073741824, "parameters": 1.5e9,)"
         R"( "foreshard": {"losses": [3, 2], "iteration_time_s": 0.1, "arena_bytes": 1073741824, "device_memory_bytes": 2147483648},)"
         R"( "any_order": {"losses": [3, 2.5], "iteration_time_s": 0.08, "arena_bytes": 1073741824},)"
         R"( "pytorch": {"version": "2.11", "losses": [3, 2.25], "iteration_time_s": 0.2, "allocated_bytes": 0,)"
         R"( "reserved_bytes": 3221225472}}})"
         "\n";
  const std::string text = page();
  for (const char* words :
       {"| foreshard | 100.00 | 80 | 40.0 % | 30.0 % | 1.00 | 2.00 |",
        "| foreshard --any-order | 80.00 | 100 | 50.0 % | 37.5 % | 1.00 | - |",
        "| PyTorch 2.11, compiled | 200.00 | 40 | 20.0 % | 15.0 % | 0.00 | 3.00 |",
        "foreshard is 2.00 times as fast as PyTorch; foreshard --any-order is 2.50 times as fast as PyTorch.",
        "Predicted from the datasheet: 90.00 ms, 1.00 GiB.", "| 2 | 2.00000 | 2.50000 | 2.25000 |"})
    EXPECT_NE(text.find(words), std::string::npos) << words << "\n" << text;
}

TEST_F(GpuBench, APageWantsResults) {
  shell("mkdir out; : >out/results.jsonl");
  EXPECT_EQ(page(), "report.py: no results of run.sh in out/results.jsonl\n[exit 1]\n");
}

}  // namespace foreshard
