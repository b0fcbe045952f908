// Schedules whose stages stand on two ranks, or are updated between the backwards, and asynchronous servers, on GPUs that are not there: as on the host.
#include <gtest/gtest.h>

#include "tests/cuda/fake_training.h"

namespace foreshard::gpu {

TEST(CudaSchedules, OfOtherShapesTrainAsOnTheHost) {
  const Model model = two_layers(tiny_gpt(false));
  std::uint64_t seed = 51;
  for (const Strategy& strategy :
       std::vector<Strategy>{{.pp = 2, .pipeline = {.schedule = Schedule::Chimera}, .batch = {.micro = 2}},
                             {.tp = 2,
                             .pp = 2,
                             .pipeline = {.schedule = Schedule::DualPipe},
                             .batch = {.micro = 1},
                             .communication = {.overlap = Overlap{.tp = true}}},
                             {.pp = 2, .pipeline = {.schedule = Schedule::PipeDream}, .batch = {.micro = 1}},
                             {.dp = 2, .pp = 2, .pipeline = {.schedule = Schedule::PipeDream2BW}, .batch = {.micro = 1}}}) {
    FakeSettings settings;
    settings.seed = seed++;
    FakeRuntime runtime(settings);
    const Plan plan = lowered(model, in_single(strategy));
    const Execution host = run(plan, fake_training(2)), fake = run(plan, on_fake(runtime, 2));
    EXPECT_LE(difference(fake, host).largest(), 1e-5) << name_of(strategy) << " " << difference(fake, host).worst;
    EXPECT_TRUE(runtime.conflicts().empty());
  }
}

// The server and its workers are roles of their own, which exchange in turn. The workers' copies are older than the server's.
Execution without_older_copies(Execution done) {
  for (std::vector<WholeTensor>* tensors : {&done.values, &done.gradients})
    for (WholeTensor& tensor : *tensors) tensor.largest_difference = 0;
  return done;
}

static void expect_served_as_on_the_host(Strategy strategy, std::size_t roles) {
  strategy.communication.asynchronous = true;
  const Plan plan = lowered(two_layers(tiny_gpt(false)), in_single(strategy));
  ASSERT_EQ(plan.roles.size(), roles);
  FakeSettings settings;
  settings.seed = 57;
  FakeRuntime runtime(settings);
  const Execution host = without_older_copies(run(plan, fake_training(3))),
                  fake = without_older_copies(run(plan, on_fake(runtime, 3)));
  const Difference apart = difference(fake, host);
  EXPECT_LE(apart.largest(), 1e-5) << apart.worst << " loss " << apart.loss << " values " << apart.values << " gradients "
                                   << apart.gradients;
  EXPECT_TRUE(runtime.conflicts().empty());
}

TEST(CudaSchedules, AnAsynchronousServerTrainsAsOnTheHost) {
  expect_served_as_on_the_host({.dp = 3, .batch = {.micro = 1, .global = 6}}, 4);
}

TEST(CudaSchedules, SeveralAsynchronousServersTrainAsOnTheHost) {
  Strategy strategy{.dp = 2, .tp = 2, .batch = {.micro = 1, .global = 4}};
  strategy.communication.servers = 4;
  expect_served_as_on_the_host(strategy, 4);
  expect_served_as_on_the_host({.dp = 2, .pp = 2, .batch = {.micro = 1, .global = 4}}, 5);
}

}  // namespace foreshard::gpu
