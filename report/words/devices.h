// On which kind of device the times of a result were simulated or measured. Times of different kinds of devices (CPU and GPU, or
// two kinds of GPU) must not be compared as errors of a prediction.
#pragma once

#include <string>

#include "core/result/result.h"

namespace foreshard {

inline constexpr const char* kUnknownDevice = "an unknown device";

// Simulated: the device kinds of the plan ("a100-80"); measured: what the file says, or kUnknownDevice.
std::string device_words(const Result& result);

// Whether the times of two results may be compared. A measurement without a device name counts as one of the host, so it may be
// compared with a prediction for the host. Two such measurements may be compared; two predictions always may.
bool same_device(const Result& a, const Result& b);

// Whether `product` ("NVIDIA A100-SXM4-80GB", the name that the driver reports) can be the `gpu` of a cluster file ("a100-80").
// True for every product when the name in the cluster file holds no model number.
bool can_be(const std::string& product, const std::string& gpu);

}  // namespace foreshard
