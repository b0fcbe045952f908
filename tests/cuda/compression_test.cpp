// Trainings with compressed communication through the CUDA backend on a runtime that is not a GPU, beside the host.
#include <gtest/gtest.h>

#include "exec/nccl/cuda_communicator.h"
#include "tests/cuda/fake_runtime.h"
#include "tests/exec/checkpoint_folder.h"
#include "tests/exec/training.h"

namespace foreshard::gpu::compression_test {

static Execution run_on_fake(const Plan& plan, ExecuteOptions options, std::uint64_t seed) {
  FakeSettings settings;
  settings.seed = seed;
  FakeRuntime runtime(settings);
  options.devices = [&runtime](const Stop& stop) { return std::make_unique<CudaDevices>(runtime, stop, GpuRuns{}); };
  options.patience = std::chrono::milliseconds(60'000);
  Execution done = run(plan, options);
  EXPECT_EQ(runtime.allocated(), 0);
  for (const std::string& conflict : runtime.conflicts()) ADD_FAILURE() << conflict;
  return done;
}

// Codes are made and read by kernels; a number between two levels, or of the size of the last one that is sent, may be rounded otherwise.
// `values`: how far parameters may be apart, over the largest of their tensor.
static void compare(const Strategy& strategy, std::uint64_t seed, double values = 5e-3) {
  Model model = tiny_gpt(strategy.pp == 1);
  std::get<Transformer>(model.shape).layers = 2;
  Strategy single = in_double(strategy);
  single.precision = DType::F32;
  const Plan plan = lowered(model, single);
  ExecuteOptions options = training(2);
  options.optimizer.eps = 1e-2;  // Adam makes much of the last bits of small gradients
  const Execution host = run(plan, options), fake = run_on_fake(plan, options, seed);
  EXPECT_LE(difference(fake, host).loss, 1e-4) << seed;
  EXPECT_LE(difference(fake, host).values, values) << seed << " " << difference(fake, host).worst;
  for (const WholeTensor& tensor : fake.values) EXPECT_EQ(tensor.largest_difference, 0) << seed;
}

TEST(CudaCompression, SumsOfGradientsAreThoseOfTheHost) {
  std::uint64_t seed = 51;
  for (const Compression& codec :
       {Compression{.codec = Codec::Dgc, .kept = 0.05}, Compression{.codec = Codec::OneBit, .warm_up = 1},
        Compression{.codec = Codec::EightBit}, Compression{.codec = Codec::Segmented, .bits = 4},
        Compression{.codec = Codec::Segmented, .bits = 8, .segments = 8}}) {
    Strategy strategy{.dp = 2, .batch = {.micro = 2}};
    strategy.communication.gradients = codec;
    compare(strategy, seed++);
  }
}

// Into a slice of the gradients, and added to the own part micro-batch by micro-batch; a stage on two ranks; updates between backwards.
TEST(CudaCompression, SumsInEveryPlaceAreThoseOfTheHost) {
  std::uint64_t seed = 71;
  for (const int stage : {1, 2, 3}) {
    Strategy strategy{.dp = 2, .batch = {.micro = 1}, .zero = {.stage = stage}};
    strategy.communication.gradients = {.codec = Codec::Segmented, .bits = 8};
    compare(strategy, seed++);
  }
  for (const int group : {2, 3}) {  // which add theirs before they send codes
    Strategy strategy{.dp = 2 * group, .batch = {.micro = 1, .global = 12}};
    strategy.communication.gradients = {.codec = Codec::EightBit}, strategy.communication.compress_group = group;
    compare(strategy, seed++);
  }
  for (const Schedule schedule : {Schedule::Chimera, Schedule::PipeDream2BW}) {
    Strategy strategy{.dp = schedule == Schedule::Chimera ? 1 : 2, .pp = 2, .batch = {.micro = 1}};
    strategy.pipeline.schedule = schedule;
    strategy.communication.gradients = {.codec = Codec::EightBit};
    compare(strategy, seed++);
  }
}

struct CudaCompressedRuns : CheckpointFolder {};

TEST_F(CudaCompressedRuns, ResumedOnesHaveTheSameBits) {
  for (const int stage : {0, 2}) {
    Strategy strategy = in_double({.dp = 2, .batch = {.micro = 2}, .zero = {.stage = stage}});
    strategy.precision = DType::F32;
    strategy.communication.gradients = {.codec = Codec::Segmented, .bits = 4};
    Model model = tiny_gpt();
    std::get<Transformer>(model.shape).layers = 1;
    const Plan plan = lowered(model, strategy);
    const Execution four = run_on_fake(plan, training(4), 81);
    ExecuteOptions first = training(2), rest = training(2);
    first.save = rest.resume = file("two");
    run_on_fake(plan, first, 82);
    Execution end = four;
    end.steps.erase(end.steps.begin(), end.steps.begin() + 2);
    EXPECT_EQ(difference(run_on_fake(plan, rest, 83), end).largest(), 0) << stage;
  }
}

TEST(CudaCompression, SumsOfActivationsAreThoseOfTheHost) {
  std::uint64_t seed = 61;
  for (const bool sequence : {false, true})
    for (const Compression& codec : {Compression{.tokens = 0.5}, Compression{.codec = Codec::Segmented, .bits = 8},
                                     Compression{.codec = Codec::Segmented, .tokens = 0.5, .bits = 8}}) {
      Strategy strategy{.tp = 2, .sequence_parallel = sequence, .batch = {.micro = 2}};
      strategy.communication.activations = codec;
      compare(strategy, seed++, codec.codec == Codec::Segmented ? 5e-2 : 5e-3);  // biases are as small as their steps yet
    }
}

}  // namespace foreshard::gpu::compression_test
