// Models with the operators of the families of today on a runtime that is not a GPU: whatever the split, they train as on the host.
#include "tests/exec/modern_models.h"

#include <gtest/gtest.h>

#include "tests/cuda/fake_training.h"
#include "tests/how_many.h"

namespace foreshard::gpu::modern_models_test {
namespace {

Model shortened(const ModernModel& which) {
  Model model = modern_model(which);
  std::get<Transformer>(model.shape).layers = 3;  // local layers and one that is not
  return model;
}

Execution on_gpus(const Plan& plan) {
  FakeRuntime runtime;
  Execution done = run(plan, on_fake(runtime, 2));
  for (const std::string& conflict : runtime.conflicts()) ADD_FAILURE() << conflict;
  return done;
}

void expect_as_on_the_host(const ModernModel& which, const Strategy& strategy) {
  const Model model = shortened(which);
  SCOPED_TRACE(model.name + " " + name_of(strategy));
  const Execution host = run(lowered(model, in_single({.batch = {.micro = 2, .global = 4}})), fake_training(2));
  Strategy split = strategy;
  split.batch.global = 4;
  const Difference apart = difference(on_gpus(lowered(model, in_single(split))), host);
  EXPECT_LE(std::max(apart.loss, apart.values), 2e-5) << apart.worst;
}

TEST(CudaModernModels, TrainAsOnTheHost) {
  for (const ModernModel& which : some_of(modern_models(), 4)) {
    const bool tensor_parallel = which.name != "olmo2";  // its norms are over all heads
    expect_as_on_the_host(which, {.dp = tensor_parallel ? 1 : 2,
                                  .tp = tensor_parallel ? 2 : 1,
                                  .sequence_parallel = tensor_parallel,
                                  .batch = {.micro = 2},
                                  .recompute = {.kind = RecomputeKind::Full}});
  }
}

// Windows, chunks (in a ring of keys) and sinks where each context-parallel rank has two chunks of the positions.
TEST(CudaModernModels, TrainAsOnTheHostOverContextParallelRanks) {
  for (const ModernModel& which : modern_models()) {
    if (which.name != "gemma3" && which.name != "llama4" && which.name != "gpt_oss") continue;
    Strategy strategy{.dp = 1, .batch = {.micro = 2}};
    strategy.cp = 2, strategy.context = which.name == "llama4" ? ContextKind::Ring : ContextKind::AllGather;
    expect_as_on_the_host(which, strategy);
  }
}

}  // namespace
}  // namespace foreshard::gpu::modern_models_test
