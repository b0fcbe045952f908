// calibrate --device cuda, on the runtime of the tests: its times mean nothing, its form does.
#include <gtest/gtest.h>

#include "exec/calibrate/calibrate.h"
#include "exec/cuda/calibrate_cuda.h"
#include "exec/cuda/cuda_communicator.h"
#include "tests/cuda/fake_runtime.h"
#include "tests/exec/training.h"

namespace foreshard::gpu {

TEST(CudaCalibrate, FillsEveryPartOfAProfile) {
  FakeRuntime runtime;
  CudaMeasures measures(runtime, {.product = 16, .sum = 3000});
  CalibrateOptions options{.device = "a GPU", .steps = 2, .dtypes = {DType::F32}, .largest_product = 16};
  options.measures = &measures;
  options.devices = [&](const Stop& stop) { return std::make_unique<CudaDevices>(runtime, stop); };
  Strategy strategy = in_double({.dp = 2, .micro_batch = 4});
  strategy.precision = DType::F32;
  const auto profile = calibrate({lowered(tiny_mlp(), strategy)}, options);
  ASSERT_TRUE(profile);
  EXPECT_EQ(profile->device, "a GPU");
  EXPECT_NE(profile->machine.find("a GPU that is not there"), std::string::npos);
  EXPECT_EQ(profile->copies.size(), 8U);  // 4 KiB, times 4 up to 64 MiB
  EXPECT_EQ(profile->all_reduces.size(), 7U);
  EXPECT_GT(profile->link_bandwidth.value, 0);
  EXPECT_GT(profile->launch_overhead.value, 0);
  // Products of three phases, the update, the activation, the loss.
  EXPECT_GE(profile->ops.size(), 6U);
  EXPECT_GE(profile->collective_share, 0);
  EXPECT_LE(profile->collective_share, 0.9);
  EXPECT_EQ(profile->outside_memory.value, FakeRuntime::kContext);
  EXPECT_EQ(parse_machine_profile(to_json(*profile), "again").ops, profile->ops);
  EXPECT_EQ(measures.host_copies().size(), 12U);  // pinned or not, to and fro, three sizes
  EXPECT_TRUE(runtime.conflicts().empty());
  EXPECT_EQ(runtime.allocated(), 0);
}

// A fill takes 1000 ns on this runtime, however long the two events do that it is measured with.
TEST(CudaCalibrate, TheTimeOfTimingIsSubtracted) {
  FakeRuntime runtime({.timed_event = 70'000});
  CudaMeasures measures(runtime, {});
  EXPECT_DOUBLE_EQ(measures.start().value, 1e-6);
}

}  // namespace foreshard::gpu
