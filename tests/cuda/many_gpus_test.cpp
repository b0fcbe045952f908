// Trainings on several GPUs, of one process and of many: the same bits however the ranks are dealt, and nothing on GPUs that are not theirs.
#include <gtest/gtest.h>

#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <sstream>

#include "exec/nccl/nccl_lanes.h"
#include "tests/cuda/fake_training.h"
#include "tests/exec/processes.h"

namespace foreshard::gpu::many_gpus_test {
namespace {

void expect_sound(const FakeRuntime& runtime) {
  for (const std::string& conflict : runtime.conflicts()) ADD_FAILURE() << conflict;
  EXPECT_EQ(runtime.allocated(), 0);
}

// ---- one process --------------------------------------------------------------------------------------------------------------

TEST(ManyGpus, FourGpusTrainToTheBitsOfOne) {
  const Plan plan = lowered(two_layers(tiny_gpt()), in_single({.dp = 2, .tp = 2, .batch = {.micro = 2}}));
  FakeRuntime one, four({.seed = 2, .devices = 4, .late_zeroing = true});
  const Execution together = run(plan, on_fake(one, 2)), apart = run(plan, on_fake(four, 2));
  EXPECT_EQ(difference(apart, together).largest(), 0) << difference(apart, together).worst;
  expect_sound(four);
  EXPECT_EQ(four.contexts(), (std::set<int>{0, 1, 2, 3}));
}

// A pipeline of four: each GPU reads from its neighbours, and nobody from anybody else.
TEST(ManyGpus, OnlyPairsThatThePlanUsesReachEachOther) {
  const Plan plan = lowered(tiny_gpt(), in_single({.pp = 4, .batch = {.micro = 4}}));
  FakeRuntime runtime({.devices = 8});
  static_cast<void>(run(plan, on_fake(runtime, 1)));
  std::set<std::pair<int, int>> neighbours = {{0, 3}, {3, 0}};  // of the tied embedding, which both ends sum
  for (int gpu = 0; gpu < 3; ++gpu) neighbours.insert({{gpu, gpu + 1}, {gpu + 1, gpu}});
  EXPECT_EQ(runtime.reached(), neighbours);
  EXPECT_EQ(runtime.contexts(), (std::set<int>{0, 1, 2, 3}));
  EXPECT_GE(runtime.urgent_streams(), 4) << "streams that only communicate go first";
}

// Sums read the memory of other GPUs; copies go through the host where they must.
TEST(ManyGpus, WithoutPeerAccessSumsAreRefusedAndMessagesAreNot) {
  FakeRuntime runtime({.devices = 2, .peers = 1});
  EXPECT_EQ(failure_of(lowered(tiny_mlp(), in_single({.dp = 2, .batch = {.micro = 4}})), on_fake(runtime, 1)),
            "peer access failed: GPU 0 cannot reach the memory of GPU 1 on this machine; --nccl does without");
  const Plan pipeline = lowered(two_layers(tiny_llama()), in_single({.pp = 2, .batch = {.micro = 4}}));
  FakeRuntime one;
  EXPECT_EQ(difference(run(pipeline, on_fake(runtime, 1)), run(pipeline, on_fake(one, 1))).largest(), 0);
  EXPECT_TRUE(runtime.reached().empty());
}

// ---- processes ----------------------------------------------------------------------------------------------------------------

// What a training left: losses of all steps, and the checkpoint after the last.
struct Left {
  std::vector<double> losses = {};
  std::string checkpoint = {};
};

// Process p has the GPUs from p times its ranks on, as LOCAL_RANK says. Each has a runtime of its own, as processes do.
Left trained(const Plan& plan, int processes, int ranks) {
  const std::string file =
      testing::TempDir() + "dealt_" + std::to_string(getpid()) + "_" + std::to_string(processes) + ".safetensors";
  TwinSession twin({.connecting = std::chrono::milliseconds(20)});
  std::vector<std::unique_ptr<FakeRuntime>> machines;
  for (int p = 0; p < processes; ++p)
    machines.push_back(std::make_unique<FakeRuntime>(
        FakeSettings{.seed = 7 + static_cast<std::uint64_t>(p), .devices = ranks, .late_zeroing = true}));
  Left left;
  const int each = ranks / processes;
  const auto train = [&](int p, ProcessMesh* mesh) {
    FakeRuntime& runtime = *machines[static_cast<std::size_t>(p)];
    ExecuteOptions options = by_twin(runtime, twin.library(), {.ranks = ranks, .mesh = mesh, .first_gpu = p * each}, 3);
    options.tensors = false, options.processes = mesh, options.across_processes = true, options.save = file;
    const auto done = std::get<Execution>(execute(plan, options));
    if (p == 0)
      for (const StepReport& step : done.steps) left.losses.push_back(step.loss);
    std::set<int> own;
    for (int gpu = p * each; gpu < (p + 1) * each; ++gpu) own.insert(gpu);
    EXPECT_EQ(runtime.contexts(), own) << "process " << p << " of " << processes;
    expect_sound(runtime);
  };
  if (processes == 1)
    train(0, nullptr);
  else
    in_processes(processes, ranks, [&](ProcessMesh& mesh) { train(mesh.process(), &mesh); });
  for (const std::string& complaint : twin.end().complaints) ADD_FAILURE() << complaint;
  std::stringstream bytes;
  bytes << std::ifstream(file, std::ios::binary).rdbuf();
  left.checkpoint = bytes.str();
  std::filesystem::remove(file);
  return left;
}

TEST(ManyGpus, TheSameBitsHoweverEightRanksAreDealt) {
  const Plan plan = lowered(two_layers(tiny_gpt()), in_single({.dp = 2, .tp = 2, .pp = 2, .batch = {.micro = 1}}));
  const Left one = trained(plan, 1, 8);
  ASSERT_EQ(one.losses.size(), 3U);
  EXPECT_GT(one.checkpoint.size(), 10'000U);
  for (const int processes : {2, 8}) {
    const Left many = trained(plan, processes, 8);
    EXPECT_EQ(many.losses, one.losses) << processes;
    EXPECT_TRUE(many.checkpoint == one.checkpoint) << processes << " processes left another checkpoint";
  }
}

// ---- lanes of messages --------------------------------------------------------------------------------------------------------

// Two stages, forward and backward: two communicators of the same two ranks, made one after the other; a ring takes that of all ranks.
TEST(NcclLanes, EachPairAndTagHasItsOwnButRings) {
  Messages messages;
  messages.add("0 1 forward.0\n1 2 forward.0\n1 0 backward.0\n0 1 a ring\n1 0 a ring\n-1 -1 a ring\n");
  EXPECT_EQ(messages.text(), "0 1 a ring\n0 1 forward.0\n1 0 a ring\n1 0 backward.0\n1 2 forward.0\n-1 -1 a ring\n");
  const std::set<Lane> lanes = messages.apart();
  EXPECT_EQ(lanes, (std::set<Lane>{{{0}, {1}, "forward.0"}, {{1}, {2}, "forward.0"}, {{1}, {0}, "backward.0"}}));
  const auto rounds = rounds_of(lanes);
  EXPECT_EQ(rounds.size(), 3U) << "rank 1 has three";
  for (const auto& round : rounds) EXPECT_EQ(round.size(), 1U);
  EXPECT_EQ(rounds_of({{{0}, {1}, "a"}, {{2}, {3}, "a"}, {{1}, {2}, "a"}}).size(), 2U);
  EXPECT_THROW(messages.add("nonsense\n"), DeviceError);
}

}  // namespace
}  // namespace foreshard::gpu::many_gpus_test
