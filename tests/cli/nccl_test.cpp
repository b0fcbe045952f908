// foreshard run and calibrate with --device cuda and NCCL: the program with the twins of both beside it (tests/cuda/twin_module.cpp). No GPU.
#include "tests/cli/processes.h"

namespace foreshard {

class NcclRun : public Processes {
 protected:
  void SetUp() override {
    Processes::SetUp();
    const RanLine made = run_line(
        "lower --model gpt2-124m --cluster dgx-a100 --set model.n_layer=1 --set model.n_embd=32 --set model.n_head=4 "
        "--set model.vocab_size=64 --set model.n_positions=16 --gpus 2 --dp 2 --global-batch 4 --micro-batch 1 --precision "
        "fp32 "
        "--save-plan " +
        (folder_ / "two.plan.json").string());
    ASSERT_EQ(made.code, ExitCode::Ok) << made.err;
  }
  // With the twin, unless the environment names another library.
  std::string twin(const std::string& words, const std::string& environment = "") const {
    return shell("env FORESHARD_NCCL=" FORESHARD_NCCL_TWIN " " + environment + " " FORESHARD_TWIN_PROGRAM " " + words);
  }
  std::string report() const { return file("report"); }
  // Losses of five steps.
  std::vector<double> trained(const std::string& options) const {
    const std::string said =
        twin("run two.plan.json --steps 5 --json --patience 60 --device cuda " + options, "TWIN_REPORT=report");
    const std::size_t json = said.find('{');
    EXPECT_NE(json, std::string::npos) << said;
    return json == std::string::npos ? std::vector<double>{} : losses(said.substr(json));
  }
  // What the report says behind this word.
  int count(const std::string& word) const {
    const std::string text = report();
    const std::size_t at = text.find(word + " ");
    return at == std::string::npos ? -1 : std::stoi(text.substr(at + word.size()));
  }
};

// Two ranks: by their own communicator, by NCCL, and by NCCL with graphs. Sums of two numbers have one result, so the losses are the same.
TEST_F(NcclRun, TrainsWithAndWithoutGraphs) {
  const std::vector<double> own = trained("");
  EXPECT_EQ(count("calls"), 0);
  ASSERT_EQ(own.size(), 5U);
  const std::vector<double> nccl = trained("--nccl");
  const int calls = count("calls");
  EXPECT_GE(calls, 5 * 2) << report();  // of both ranks, in each step
  EXPECT_EQ(count("connections"), 32) << "CUDA has 8 unless it is told";
  EXPECT_EQ(count("graphs"), 0);
  EXPECT_EQ(count("communicators"), count("destroyed"));
  EXPECT_EQ(report().find(':'), std::string::npos) << report();  // nothing that was complained about
  for (std::size_t i = 0; i < 5; ++i) EXPECT_NEAR(nccl[i], own[i], 1e-5);
  EXPECT_EQ(trained("--nccl --graphs"), nccl);
  EXPECT_EQ(count("calls"), calls);
  EXPECT_GT(count("graphs"), 0);
  EXPECT_EQ(report().find(':'), std::string::npos) << report();
}

TEST_F(NcclRun, WhatIsAskedWronglyIsTold) {
  EXPECT_EQ(twin("run two.plan.json --nccl"),
            "foreshard: command line: --nccl: found --device host, expected --device cuda\n[exit 1]\n");
  EXPECT_EQ(twin("run two.plan.json --graphs"),
            "foreshard: command line: --graphs: found --device host, expected --device cuda\n[exit 1]\n");
}

// Libraries that cannot be used: not there, no library, another one, too old. One line, and the code of a device.
TEST_F(NcclRun, LibrariesThatCannotBeUsedAreTold) {
  const std::string run = "run two.plan.json --device cuda --nccl";
  const auto told = [&](const std::string& environment, const std::string& what) {
    const std::string said = twin(run, environment);
    EXPECT_NE(said.find(what), std::string::npos) << said;
    EXPECT_TRUE(said.ends_with("\n[exit 3]\n")) << said;
    EXPECT_EQ(said.find('\n'), said.rfind("\n[exit")) << said;
  };
  told("FORESHARD_NCCL=/nowhere/libnccl.so.2",
       "foreshard: looking for NCCL failed: dlopen of /nowhere/libnccl.so.2 failed: /nowhere/libnccl.so.2: cannot open shared "
       "object file");
  shell("echo no library >nothing.so");
  told("FORESHARD_NCCL=./nothing.so", "looking for NCCL failed: dlopen of ./nothing.so failed: ");
  told("FORESHARD_NCCL=libm.so.6", "looking for NCCL failed: dlsym of ncclGetVersion in libm.so.6 failed: not there");
  told("TWIN_NCCL_VERSION=21706", "version 2.17.6; 2.26 or later is needed");
}

TEST_F(NcclRun, AGpuPerRank) {
  const std::string said = twin("run two.plan.json --device cuda --nccl", "TWIN_GPUS=1");
  EXPECT_NE(said.find("NCCL failed: rank 0 and rank 1 would share GPU 0; NCCL wants one for each"), std::string::npos) << said;
  EXPECT_TRUE(said.ends_with("[exit 3]\n")) << said;
}

// Since 2.30 NCCL lets ranks share one, when somebody says so; the message names it just then.
TEST_F(NcclRun, SharesAGpuWhereNcclDoes) {
  const std::string run = "run two.plan.json --steps 2 --patience 60 --device cuda --nccl",
                    shared = "TWIN_GPUS=1 TWIN_NCCL_VERSION=23007 ";
  EXPECT_NE(twin(run, shared).find("NCCL wants one for each (or NCCL_MULTI_RANK_GPU_ENABLE=1)"), std::string::npos);
  const std::string said = twin(run, shared + "NCCL_MULTI_RANK_GPU_ENABLE=1 TWIN_REPORT=report");
  EXPECT_NE(said.find("after 2 steps"), std::string::npos) << said;
  EXPECT_GE(count("calls"), 4);
}

// selftest --nccl: on the twin's runtime all collectives are those of the host.
TEST_F(NcclRun, SelftestComparesCollectives) {
  const std::string said = twin("selftest --device cuda --nccl --only NCCL --all --json --progress none", "TWIN_REPORT=report");
  const JsonReader told = JsonReader::parse(said, "out");
  int collectives = 0;
  for (const JsonReader& line : told.at("kernels").elements())
    if (line.at("name").as_string().starts_with("NCCL 2.28.9, 2 ranks: ")) {
      ++collectives;
      EXPECT_TRUE(line.at("right").as_bool()) << line.at("name").as_string();
    }
  EXPECT_EQ(collectives, 56);
  EXPECT_EQ(report().find("complaint"), std::string::npos) << report();
  EXPECT_NE(twin("selftest --device cuda --quick --nccl", "FORESHARD_NCCL=/nowhere.so").find("dlopen of /nowhere.so"),
            std::string::npos);
}

TEST_F(NcclRun, TheDoctorTellsGpusAndTheirLinks) {
  const std::string bridged = twin("doctor --device cuda", "TWIN_GPUS=4 TWIN_NVLINKED=2");
  EXPECT_NE(bridged.find("0 a GPU that is not there, 0.995117 of 1 GiB free (none, none), NVLink to 1, "), std::string::npos)
      << bridged;
  EXPECT_NE(bridged.find(", NVLink to 2\n"), std::string::npos) << bridged;
  EXPECT_NE(bridged.find("libnccl_twin.so: version 2.28.9"), std::string::npos) << bridged;
  EXPECT_NE(twin("doctor --device cuda", "TWIN_GPUS=2").find(", PCIe to the others"), std::string::npos);
  EXPECT_EQ(twin("doctor --device cuda", "TWIN_GPUS=1").find("to the others"), std::string::npos);
}

// What a time depends on and a table does not show: which attention ran, and kernels that were not optimized.
TEST_F(NcclRun, ARunSaysByWhatItsAttentionIsComputed) {
  const RanLine made = run_line(
      "lower --model gpt2-124m --cluster dgx-a100 --set model.n_layer=2 --set model.n_embd=32 --set model.n_head=4 --set "
      "model.vocab_size=64 --set model.n_positions=16 --gpus 1 --global-batch 1 --micro-batch 1 --precision bf16 --attention "
      "flash "
      "--save-plan " +
      (folder_ / "flash.plan.json").string());
  ASSERT_EQ(made.code, ExitCode::Ok) << made.err;
  const std::string note = "attention of 2 layers: own kernels, because cuDNN is not there",
                    run = "run flash.plan.json --steps 1 ";
  const std::string text = twin(run + "--device cuda");
  EXPECT_NE(text.find("foreshard: " + note + "\n"), std::string::npos) << text;
  EXPECT_EQ(text.find("not optimized"), std::string::npos) << text;
  const std::string json = twin(run + "--device cuda --json 2>/dev/null");
  EXPECT_NE(json.find("\"notes\": [\n    \"" + note + "\"\n  ]"), std::string::npos) << json;
  const std::string slow = "TWIN_KERNELS='90|-O3 -Xcicc -O1'";
  EXPECT_NE(twin(run + "--device cuda", slow).find("the GPU kernels were not optimized (nvcc -O3 -Xcicc -O1)"),
            std::string::npos);
  EXPECT_NE(twin("doctor", slow).find("-> not optimized: cmake --preset release"), std::string::npos);
  EXPECT_NE(twin("doctor").find("kernels        for sm 90, nvcc -O3\n"), std::string::npos) << twin("doctor");
  EXPECT_EQ(twin(run).find("attention of"), std::string::npos) << "a run on the host has one kernel";
}

// The measurement through the program: classes of links from the GPUs, the profile under their name.
TEST_F(NcclRun, CalibrateMeasuresCollectives) {
  const std::string said =
      twin("calibrate --collectives --device cuda --quick --name a100-80", "TWIN_GPUS=2 TWIN_NVLINKED=2 TWIN_REPORT=report");
  EXPECT_NE(said.find("all_reduce      automatic  nvlink      1      2"), std::string::npos) << said;
  EXPECT_TRUE(said.ends_with("written: cuda.profile.json\n")) << said;
  EXPECT_EQ(report().find(':'), std::string::npos) << report();
  const std::string job =
      "foreshard simulate --model gpt2-124m --cluster dgx-a100 --gpus 2 --dp 2 --global-batch 8 --micro-batch 4 --seq 128 "
      "--json ";
  const double time = JsonReader::parse(shell(job), "out").at("iteration_time_s").as_double();
  EXPECT_NE(JsonReader::parse(shell(job + "--profile cuda.profile.json"), "out").at("iteration_time_s").as_double(), time);
  EXPECT_NE(twin("calibrate --collectives --device cuda --quick", "NCCL_ALGO=Tree").find("all_reduce  tree       pcie"),
            std::string::npos);
  EXPECT_NE(twin("calibrate --collectives --device cuda", "TWIN_GPUS=1")
                .find("collectives of one process need two GPUs; there is one\n[exit 3]"),
            std::string::npos);
  EXPECT_NE(twin("calibrate --collectives --device cuda --quick --name h100-80")
                .find("device: found \"a100-80\", expected \"h100-80\""),
            std::string::npos);
}

}  // namespace foreshard
