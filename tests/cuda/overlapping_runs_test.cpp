// Asynchronous pipelines through the CUDA backend: the next step is begun while the last one drains, also out of CUDA graphs.
#include <gtest/gtest.h>

#include "exec/nccl/cuda_communicator.h"
#include "tests/cuda/fake_runtime.h"
#include "tests/exec/training.h"

namespace foreshard::gpu::overlapping_runs_test {

static Execution on_fake(const Plan& plan, ExecuteOptions options, const GpuRuns& runs) {
  FakeRuntime runtime(FakeSettings{.seed = 5});
  options.devices = [&runtime, runs](const Stop& stop) { return std::make_unique<CudaDevices>(runtime, stop, runs); };
  options.patience = std::chrono::milliseconds(60'000);
  Execution done = run(plan, options);
  for (const std::string& conflict : runtime.conflicts()) ADD_FAILURE() << conflict;
  return done;
}

TEST(CudaOverlappingRuns, StepsEqualTheHost) {
  Model model = tiny_gpt(false);
  std::get<Transformer>(model.shape).layers = 2;
  constexpr int kSteps = 6;  // graphs are used from the third on, the last is timed
  for (const Schedule schedule : {Schedule::PipeDream, Schedule::PipeDream2BW, Schedule::PipeMare}) {
    Strategy s = in_double({.dp = 1, .pp = 2, .pipeline = {.schedule = schedule}, .batch = {.micro = 1, .global = 4}});
    s.precision = DType::F32;
    s.pipeline.microbatch_group = schedule == Schedule::PipeDream2BW ? 4 : 0;
    const Plan plan = lowered(model, s);
    EXPECT_FALSE(plan.roles[0].ahead.empty());
    ExecuteOptions options = training(kSteps);
    options.optimizer.eps = 1e-2;
    const Execution host = run(plan, options);
    for (const bool graphs : {false, true})
      for (const bool barrier : {true, false}) {
        options.barrier = barrier;
        const Execution fake = on_fake(plan, options, {.graphs = graphs, .timed_from = kSteps - 1});
        EXPECT_LE(difference(fake, host).largest(), 1e-5) << name_of(s) << " " << graphs << " " << difference(fake, host).worst;
      }
  }
}

}  // namespace foreshard::gpu::overlapping_runs_test
