#include "report/words/devices.h"

#include <gtest/gtest.h>

namespace foreshard::devices_test {
namespace {

Result predicted(const std::string& kind) {
  Result result;
  result.plan.roles = {{.device_kind = kind}};
  return result;
}

Result measured(const std::string& plan_for, const MeasuredOn& on) {
  Result result = predicted(plan_for);
  result.trace.origin = Origin::Measured;
  result.measured_on = on;
  return result;
}

TEST(Devices, AGpuIsWhatItCallsItself) {
  EXPECT_TRUE(can_be("NVIDIA A100-SXM4-80GB", "a100-80"));
  EXPECT_FALSE(can_be("NVIDIA A100-SXM4-40GB", "a100-80"));
  EXPECT_FALSE(can_be("NVIDIA A100 80GB PCIe", "a100-80"));
  EXPECT_TRUE(can_be("NVIDIA A100 80GB PCIe", "a100-pcie-80"));
  EXPECT_TRUE(can_be("NVIDIA H100 80GB HBM3", "h100-80"));
  EXPECT_TRUE(can_be("NVIDIA H200", "h200"));
  EXPECT_FALSE(can_be("NVIDIA H200", "h100-80"));
  EXPECT_TRUE(can_be("NVIDIA GeForce RTX 4090", "rtx-4090"));
  EXPECT_FALSE(can_be("NVIDIA GeForce RTX 4090 Laptop GPU", "rtx-4090"));
  EXPECT_TRUE(can_be("NVIDIA RTX 6000 Ada Generation", "rtx-6000-ada"));
  EXPECT_TRUE(can_be("NVIDIA GH200 480GB", "gh200-96"));
  EXPECT_TRUE(can_be("NVIDIA H200", "ours"));  // tells no model
}

TEST(Devices, AProcessorSaysNothingOfAGpu) {
  const Result run = measured("a100-80", {"host", "a processor, 2 cores"});
  EXPECT_FALSE(same_device(predicted("a100-80"), run));
  EXPECT_FALSE(same_device(run, predicted("a100-80")));
  EXPECT_TRUE(same_device(measured("host", {"host", "a processor"}), predicted("host")));
  EXPECT_TRUE(same_device(run, measured("a100-80", {"host", "the same, by the clock"})));
  EXPECT_FALSE(same_device(run, measured("a100-80", {"NVIDIA A100-SXM4-80GB", "one"})));
  EXPECT_FALSE(same_device(measured("host", {"NVIDIA H200", "one"}), predicted("host")));
  EXPECT_TRUE(same_device(measured("a100-80", {"NVIDIA A100-SXM4-80GB", "one"}), predicted("a100-80")));
  EXPECT_EQ(device_words(run), "a processor, 2 cores");
  EXPECT_EQ(device_words(predicted("a100-80")), "a100-80");
}

TEST(Devices, AFileThatDoesNotSayIsOfAnUnknownDevice) {
  const Result old = measured("a100-80", {});
  EXPECT_EQ(device_words(old), kUnknownDevice);
  EXPECT_FALSE(same_device(old, predicted("a100-80")));
  EXPECT_TRUE(same_device(measured("host", {}), predicted("host")));  // what its plan is for
  EXPECT_TRUE(same_device(old, old));
}

TEST(Devices, TwoPredictionsMayBeCompared) { EXPECT_TRUE(same_device(predicted("a100-80"), predicted("h100-80"))); }

}  // namespace
}  // namespace foreshard::devices_test
