// Whole trainings through the CUDA backend on a runtime that is not a GPU: the interpreter, streams, events, arenas and the
// communicator are those of a GPU.
#include <gtest/gtest.h>

#include "exec/cuda/cuda_communicator.h"
#include "tests/cuda/fake_runtime.h"
#include "tests/exec/training.h"

namespace foreshard::gpu {

static Strategy in_single(Strategy strategy = {}) {
  strategy = in_double(strategy);
  strategy.precision = DType::F32;
  return strategy;
}

static ExecuteOptions on(FakeRuntime& runtime, int steps = 2) {
  ExecuteOptions options = training(steps);
  options.devices = [&runtime](const Stop& stop) { return std::make_unique<CudaDevices>(runtime, stop); };
  return options;
}

static Execution run_on_fake(const Plan& plan, FakeSettings settings = {}, int steps = 2) {
  FakeRuntime runtime(std::move(settings));
  Execution done = run(plan, on(runtime, steps));
  EXPECT_EQ(runtime.allocated(), 0);
  for (const std::string& conflict : runtime.conflicts()) ADD_FAILURE() << conflict;
  return done;
}

TEST(CudaTraining, OneRankEqualsTheHost) {
  for (const Model& model : {tiny_gpt(), tiny_llama(), tiny_bert(), tiny_mlp()}) {
    const Plan plan = lowered(model, in_single());
    const Execution host = run(plan, training(2)), fake = run_on_fake(plan);
    EXPECT_LE(difference(fake, host).largest(), 1e-5) << model.name << " " << difference(fake, host).worst;
  }
}

}  // namespace foreshard::gpu
