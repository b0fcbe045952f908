// Layer lists cut by tensor parallelism, through the CUDA backend on a runtime that is not a GPU.
#include <gtest/gtest.h>

#include "exec/nccl/cuda_communicator.h"
#include "tests/cuda/fake_runtime.h"
#include "tests/exec/training.h"

namespace foreshard::gpu::layer_list_test {

static Execution run_on_fake(const Model& model, Strategy strategy, std::uint64_t seed) {
  FakeSettings settings;
  settings.seed = seed;
  FakeRuntime runtime(settings);
  ExecuteOptions options = training(2);
  options.optimizer.eps = 1e-2;  // Adam makes much of the last bits of small gradients
  options.devices = [&runtime](const Stop& stop) { return std::make_unique<CudaDevices>(runtime, stop, GpuRuns{}); };
  options.patience = std::chrono::milliseconds(60'000);
  strategy = in_double(strategy);
  strategy.precision = DType::F32;
  Execution done = run(lowered(model, strategy), options);
  EXPECT_EQ(runtime.allocated(), 0);
  for (const std::string& conflict : runtime.conflicts()) ADD_FAILURE() << conflict;
  return done;
}

// A pair by columns and rows; a linear layer by columns that are gathered, of whose gradient each rank copies its own part.
TEST(CudaLayerLists, CutOnesEqualOneRank) {
  using enum LayerOp;
  LayerList list{.input = {12}, .classes = 8};
  list.layers = {{.name = "a", .op = Linear, .features = 16, .bias = true},
                 {.name = "a.relu", .op = Relu},
                 {.name = "b", .op = Linear, .features = 12, .bias = true},
                 {.name = "b.relu", .op = Relu},
                 {.name = "out", .op = Linear, .features = 8, .bias = true}};
  const Model model{.name = "list", .shape = std::move(list)};
  const Execution one = run_on_fake(model, {}, 1);
  std::uint64_t seed = 17;
  for (Strategy strategy : {Strategy{.tp = 2}, Strategy{.tp = 4}, Strategy{.dp = 2, .tp = 2, .zero = {.stage = 1}}}) {
    strategy.batch.micro = strategy.tp == 2 ? 4 : 2;
    const Execution many = run_on_fake(model, strategy, seed++);
    EXPECT_LE(difference(many, one).largest(), 1e-5) << name_of(strategy) << " " << difference(many, one).worst;
  }
}

}  // namespace foreshard::gpu::layer_list_test
