// Checkpoints of runs in several processes: the same file as one process writes, whatever number of processes goes on from it.
#include <gtest/gtest.h>

#include <signal.h>
#include <sys/resource.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <utility>

#include "exec/data/checkpoint.h"
#include "exec/data/safetensors.h"
#include "exec/interpreter/rank_threads.h"
#include "tests/exec/checkpoint_folder.h"
#include "tests/exec/processes.h"
#include "tests/exec/training.h"

namespace foreshard::checkpoint_processes_test {
namespace {

namespace fs = std::filesystem;

struct CheckpointOfProcesses : CheckpointFolder {};

ExecuteOptions quiet(int steps) {
  ExecuteOptions options = training(steps);
  options.tensors = false;
  options.patience = std::chrono::seconds(20);
  return options;
}

// Trains with the plan's ranks dealt to so many processes; returns the losses.
std::vector<double> train(const Plan& plan, int processes, const ExecuteOptions& options) {
  const auto losses = [](const Execution& done) {
    std::vector<double> all;
    for (const StepReport& step : done.steps) all.push_back(step.loss);
    return all;
  };
  if (processes == 1) return losses(run(plan, options));
  std::vector<double> of_first;
  in_processes(processes, Ranks(plan).count(), [&](ProcessMesh& mesh) {
    ExecuteOptions here = options;
    here.processes = &mesh;
    const std::vector<double> own = losses(run(plan, here));
    if (mesh.process() == 0) of_first = own;
  });
  return of_first;
}

Plan plan_of(Strategy strategy) { return lowered(tiny_gpt(), in_double(std::move(strategy))); }

// ZeRO deals states out, tensor parallelism weights, pipelining layers: every process holds another part. The bytes of the file
// are those of one process.
TEST_F(CheckpointOfProcesses, TheFileIsThatOfThreads) {
  for (const int zero : {0, 1, 3}) {
    const Plan plan = plan_of({.dp = 2, .tp = 2, .pp = 2, .batch = {.micro = 1}, .zero = {.stage = zero}});
    ExecuteOptions options = quiet(2);
    options.save = file("threads");
    train(plan, 1, options);
    const std::string expected = bytes_of(options.save);
    ASSERT_GT(expected.size(), 1000U);
    for (const int processes : {2, 3}) {
      options.save = file("processes");
      train(plan, processes, options);
      EXPECT_EQ(bytes_of(options.save), expected) << "zero " << zero << ", " << processes << " processes";
    }
  }
}

// On a file system that they share all write what they hold; who has another one sends it. The file is the same.
TEST_F(CheckpointOfProcesses, ProcessesThatSeeTheFileWriteItThemselves) {
  const Plan plan = plan_of({.dp = 2, .tp = 2, .batch = {.micro = 2}, .zero = {.stage = 1}});
  fs::create_directories(file("elsewhere"));
  std::ofstream(file("elsewhere/alone.0123456789ab.part")) << "what an earlier run left behind, long enough to be read";
  const auto saved = [&](const std::string& name, int apart) {
    std::vector<int> writers(3);
    in_processes(3, 4, [&](ProcessMesh& mesh) {
      ExecuteOptions options = quiet(1);
      options.processes = &mesh;
      RankThreads team(plan, options, {});
      const std::string path = file(mesh.process() == apart ? "elsewhere/" + name : name);
      writers[static_cast<std::size_t>(mesh.process())] =
          save_checkpoint(path, plan, team.ranks(), team.memories(), {.samples = 8}, &mesh).writers;
    });
    return writers;
  };
  EXPECT_EQ(saved("together", -1), (std::vector<int>{3, 3, 3}));
  EXPECT_EQ(saved("alone", 1), (std::vector<int>{2, 2, 2}));
  EXPECT_GT(bytes_of(file("alone")).size(), 1000U);
  EXPECT_TRUE(bytes_of(file("alone")) == bytes_of(file("together")));
  EXPECT_FALSE(fs::exists(file("elsewhere/alone")));
}

// What all see each reads; where one sees another file, of the same run a step later, or none, process 0 reads it for all. The states are the same.
TEST_F(CheckpointOfProcesses, ProcessesThatSeeTheFileReadItThemselves) {
  Strategy strategy{.dp = 2, .pp = 2, .batch = {.micro = 1}, .zero = {.stage = 1}};
  strategy.communication.gradients = {.codec = Codec::Segmented, .bits = 4};
  const Plan plan = plan_of(strategy);
  for (const int steps : {2, 3}) {
    ExecuteOptions options = quiet(steps);
    options.save = file("after" + std::to_string(steps));
    train(plan, 1, options);
  }
  const std::string saved = file("after2"), later = file("after3"), words = bytes_of(saved);
  const auto read = [&](const std::string& of_process_1) {
    std::vector<int> readers(3);
    in_processes(3, 4, [&](ProcessMesh& mesh) {
      ExecuteOptions options = quiet(1);
      options.processes = &mesh;
      RankThreads team(plan, options, {});
      readers[static_cast<std::size_t>(mesh.process())] = load_checkpoint(
          mesh.process() == 1 ? of_process_1 : saved, plan, team.ranks(), team.memories(), training_point(saved), &mesh);
      save_checkpoint(file("again"), plan, team.ranks(), team.memories(), training_point(saved), &mesh);
    });
    EXPECT_TRUE(bytes_of(file("again")) == words) << of_process_1;
    return readers;
  };
  EXPECT_EQ(read(saved), (std::vector<int>{3, 3, 3}));
  EXPECT_EQ(read(later), (std::vector<int>{1, 1, 1}));
  EXPECT_EQ(read(file("nowhere")), (std::vector<int>{1, 1, 1}));
}

// 16-bit weights and fp32 master copies travel in their own formats.
TEST_F(CheckpointOfProcesses, MixedPrecision) {
  const Plan plan = lowered(tiny_gpt(), {.dp = 2, .tp = 2, .batch = {.micro = 2, .global = 8}, .zero = {.stage = 1}});
  ExecuteOptions options = quiet(2);
  options.save = file("threads");
  train(plan, 1, options);
  options.save = file("processes");
  train(plan, 4, options);
  EXPECT_EQ(bytes_of(file("processes")), bytes_of(file("threads")));
}

// What codes left out is of a rank: each process has its own, and gets its own back.
TEST_F(CheckpointOfProcesses, WhatCodesLeftOut) {
  Strategy strategy{.dp = 2, .pp = 2, .batch = {.micro = 1}};
  strategy.communication.gradients = {.codec = Codec::Segmented, .bits = 4};
  const Plan plan = plan_of(strategy);
  ExecuteOptions saves = quiet(2), resumes = quiet(2);
  saves.save = file("threads");
  train(plan, 1, saves);
  saves.save = resumes.resume = file("processes");
  train(plan, 3, saves);
  EXPECT_EQ(bytes_of(file("processes")), bytes_of(file("threads")));
  const std::vector<double> whole = train(plan, 1, quiet(4));
  for (const int processes : {1, 2, 4})
    EXPECT_EQ(train(plan, processes, resumes), std::vector<double>(whole.begin() + 2, whole.end())) << processes;
}

// Saved by a number of processes under one split, resumed by another number under another split.
TEST_F(CheckpointOfProcesses, AnotherNumberGoesOn) {
  const Plan first = plan_of({.dp = 2, .tp = 2, .pp = 2, .batch = {.micro = 1}, .zero = {.stage = 1}, .dropout = 0.1});
  const std::vector<std::pair<Plan, int>> others = {
      {plan_of({.batch = {.micro = 2}, .dropout = 0.1}), 1},
      {plan_of({.dp = 4, .batch = {.micro = 1}, .zero = {.stage = 3}, .dropout = 0.1}), 3},
      {first, 4}};
  const std::vector<double> whole = train(first, 1, quiet(4));
  ExecuteOptions saves = quiet(2);
  saves.save = file("saved");
  train(first, 3, saves);
  for (const auto& [plan, processes] : others) {
    ExecuteOptions resumes = quiet(2);
    resumes.resume = saves.save, resumes.seed = 99;
    const std::vector<double> rest = train(plan, processes, resumes);
    ASSERT_EQ(rest.size(), 2U);
    for (std::size_t s = 0; s < 2; ++s) EXPECT_NEAR(rest[s], whole[s + 2], 1e-12) << processes << " processes, step " << s;
  }
}

// Only process 0 sees the files. What it cannot write or read stops all with its words, and the earlier checkpoint stays.
TEST_F(CheckpointOfProcesses, WhatProcessZeroCannotDoAllAreTold) {
  const Plan plan = plan_of({.dp = 2, .pp = 2, .batch = {.micro = 1}});
  const auto said = [&](const ExecuteOptions& options) {
    std::vector<std::string> all(2);
    in_processes(2, 4, [&](ProcessMesh& mesh) {
      ExecuteOptions here = options;
      here.processes = &mesh;
      try {
        static_cast<void>(execute(plan, here));
      } catch (const std::runtime_error& error) {
        all[static_cast<std::size_t>(mesh.process())] = error.what();
      }
    });
    return all;
  };
  ExecuteOptions options = quiet(1);
  options.save = file("no/such/folder");
  for (const std::string& what : said(options)) EXPECT_NE(what.find("a file that can be written"), std::string::npos) << what;
  options.save = file("kept");
  train(plan, 2, options);
  const std::string before = bytes_of(options.save);
  rlimit limit = {};  // a disk that is full: here, a limit on the size of files
  ASSERT_EQ(::getrlimit(RLIMIT_FSIZE, &limit), 0);
  const rlim_t old = std::exchange(limit.rlim_cur, 1000);
  const auto handler = ::signal(SIGXFSZ, SIG_IGN);
  ASSERT_EQ(::setrlimit(RLIMIT_FSIZE, &limit), 0);
  const std::vector<std::string> full = said(options);
  limit.rlim_cur = old;
  ASSERT_EQ(::setrlimit(RLIMIT_FSIZE, &limit), 0);
  ::signal(SIGXFSZ, handler);
  for (const std::string& what : full)
    EXPECT_NE(what.find("write of " + options.save + " failed: File too large"), std::string::npos) << what;
  EXPECT_EQ(bytes_of(options.save), before);
  options.save = {}, options.resume = file("nothing");
  for (const std::string& what : said(options)) EXPECT_NE(what.find("No such file"), std::string::npos) << what;
}

}  // namespace
}  // namespace foreshard::checkpoint_processes_test
