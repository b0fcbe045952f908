// A machine that is slow where machines are: libraries that load for seconds at the first launch, connections made at the first call, zeros that come last.
// A run on it is not taken for one that hangs. FORESHARD_HOSTILE_RUNS=200 tries as many (4 on two GPUs, 3 on eight).
//
// The clock by which patience is measured stands still but for what is slow: 90 s a library or connection, while half a second passes.
#include <gtest/gtest.h>

#include <cstdlib>

#include "tests/cuda/fake_training.h"
#include "tests/exec/processes.h"
#include "tests/how_many.h"

namespace foreshard::gpu::hostile_timing_test {
namespace {

using namespace std::chrono_literals;

// A minute for a step and for an instruction, ten more for first uses.
ExecuteOptions patient(ExecuteOptions options, const FakeRuntime& runtime) {
  options.patience = options.limits.longest_compute = 60s;
  options.limits.first_use = 600s;
  options.limits.now = [&runtime] { return runtime.now(); };
  return options;
}

FakeSettings hostile(std::uint64_t seed, int devices) {
  return {.seed = seed, .devices = devices, .late_zeroing = true, .first_use = 1ms, .first_product = 700ms, .slowly = 90s};
}

TEST(HostileTiming, NoRunIsTakenForOneThatHangs) {
  const char* asked = std::getenv("FORESHARD_HOSTILE_RUNS");
  const std::vector<Plan> plans = {lowered(tiny_mlp(), in_single({.dp = 2, .batch = {.micro = 4}})),
                                   lowered(tiny_mlp(), in_single({.dp = 2, .batch = {.micro = 2}, .zero = {.stage = 3}})),
                                   lowered(two_layers(tiny_gpt()), in_single({.pp = 2, .batch = {.micro = 4}})),
                                   lowered(two_layers(tiny_gpt()), in_single({.tp = 2, .batch = {.micro = 8}}))};
  const int runs = asked ? std::atoi(asked) : how_many(2, 4);
  for (int i = 0; i < runs; ++i) {
    const Plan& plan = plans[static_cast<std::size_t>(i) % plans.size()];
    const std::uint64_t seed = 100 + static_cast<std::uint64_t>(i);
    FakeRuntime runtime(hostile(seed, 2));
    TwinSession twin({.connects = [&] { runtime.pass(); }, .connecting = 700ms});
    EXPECT_EQ(failure_of(plan, patient(by_twin(runtime, twin.library(), {.ranks = 2}, 2), runtime)), "") << seed;
    EXPECT_GE(runtime.now().time_since_epoch(), 4 * 90s) << "two GPUs load, two ranks connect";
    for (const std::string& complaint : twin.end().complaints) ADD_FAILURE() << seed << ": " << complaint;
    for (const std::string& conflict : runtime.conflicts()) ADD_FAILURE() << seed << ": " << conflict;
  }
}

// Eight GPUs of one process, of two and of eight, by turns. They load and connect at the same time, but all of it passes on the one clock that
// every process looks at: so each takes a fourth of the time.
TEST(HostileTiming, NorOneOfEightGpusHoweverTheyAreDealt) {
  const char* asked = std::getenv("FORESHARD_HOSTILE_RUNS");
  const int runs = asked ? std::atoi(asked) : how_many(1, 3), ranks = 8;
  const Plan plan = lowered(two_layers(tiny_gpt()), in_single({.dp = 2, .tp = 2, .pp = 2, .batch = {.micro = 1}}));
  for (int i = 0; i < runs; ++i) {
    const int processes = std::vector<int>{2, 8, 1}[static_cast<std::size_t>(i) % 3], each = ranks / processes;
    const std::uint64_t seed = 100 + static_cast<std::uint64_t>(i);
    std::vector<std::unique_ptr<FakeRuntime>> machines;
    for (int p = 0; p < processes; ++p) {
      FakeSettings settings = hostile(seed + 1000 * static_cast<std::uint64_t>(p), ranks);
      settings.slowly = 22s;
      machines.push_back(std::make_unique<FakeRuntime>(settings));
    }
    const auto passed = [&machines] {
      std::chrono::steady_clock::time_point sum;
      for (const auto& machine : machines) sum += machine->now().time_since_epoch();
      return sum;
    };
    TwinSession twin({.connects = [&] { machines.front()->pass(); }, .connecting = 700ms});
    const auto train = [&](int p, ProcessMesh* mesh) {
      FakeRuntime& runtime = *machines[static_cast<std::size_t>(p)];
      ExecuteOptions options =
          patient(by_twin(runtime, twin.library(), {.ranks = ranks, .mesh = mesh, .first_gpu = p * each}, 2), runtime);
      options.limits.now = passed;
      options.tensors = false, options.processes = mesh, options.across_processes = true;
      EXPECT_EQ(failure_of(plan, options), "") << "seed " << seed << ", process " << p << " of " << processes;
      for (const std::string& conflict : runtime.conflicts()) ADD_FAILURE() << seed << ": " << conflict;
    };
    if (processes == 1)
      train(0, nullptr);
    else
      in_processes(processes, ranks, [&](ProcessMesh& mesh) { train(mesh.process(), &mesh); });
    EXPECT_GE(passed().time_since_epoch(), 16 * 22s) << "eight GPUs load, eight ranks connect";
    for (const std::string& complaint : twin.end().complaints) ADD_FAILURE() << seed << ": " << complaint;
  }
}

// A library that loads in the middle of a run, when the first step is long over, is work, too: no partner is waited for.
TEST(HostileTiming, LoadingIsWork) {
  const Plan plan = lowered(tiny_mlp(), in_single({.batch = {.micro = 4}}));
  FakeSettings settings = hostile(1, 1);
  settings.first_product = 1500ms;
  FakeRuntime runtime(settings);
  ExecuteOptions options = patient(on_fake(runtime, 2), runtime);
  options.limits.first_use = 0ms, options.limits.longest_compute = 600s;
  EXPECT_EQ(failure_of(plan, options), "");
}

// Patience ends all the same: a GPU that never answers is told, by name, and nobody asks it any more.
TEST(HostileTiming, AGpuThatHangsIsToldAndLeftAlone) {
  const Plan plan = lowered(two_layers(tiny_gpt()), in_single({.batch = {.micro = 4}}));
  FakeRuntime whole;
  static_cast<void>(run(plan, on_fake(whole, 3)));
  // Never freed: an execution that cannot end keeps what its threads use.
  auto* runtime = new FakeRuntime({.hanging_work = whole.works() / 2, .hanging_question = 10ms});
  ExecuteOptions options = on_fake(*runtime, 3);
  options.patience = options.limits.longest_compute = 3s;
  options.limits.now = [runtime] { return runtime->now(); };
  options.barrier = false;  // the host is as far ahead as it can be
  const std::string told = failure_of(plan, options);
  EXPECT_NE(told.find("does not come to an end"), std::string::npos) << told;
  // On a busy machine, it takes time until all threads have seen the stop.
  bool silent = false;
  for (int look = 0; look < 100 && !silent; ++look) {
    const std::int64_t asked = runtime->questions();
    std::this_thread::sleep_for(200ms);
    silent = runtime->questions() == asked;
  }
  EXPECT_TRUE(silent);
}

}  // namespace
}  // namespace foreshard::gpu::hostile_timing_test
