// Trainings with compressed communication through the CUDA backend on a runtime that is not a GPU, beside the host.
#include <gtest/gtest.h>

#include "exec/cuda/cuda_communicator.h"
#include "tests/cuda/fake_runtime.h"
#include "tests/exec/training.h"

namespace foreshard::gpu {

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
  Model model = tiny_gpt();
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

TEST(CudaCompression, SumsOfActivationsAreThoseOfTheHost) {
  std::uint64_t seed = 61;
  for (const Compression& codec :
       {Compression{.codec = Codec::TokenTopK, .kept = 0.5}, Compression{.codec = Codec::Segmented, .bits = 8}}) {
    Strategy strategy{.tp = 2, .batch = {.micro = 2}};
    strategy.communication.activations = codec;
    compare(strategy, seed++, codec.codec == Codec::Segmented ? 5e-2 : 5e-3);  // biases are as small as their steps yet
  }
}

}  // namespace foreshard::gpu
