// Devices: what the times of a result speak of. Those of a processor say nothing of a GPU, nor those of one kind of GPU of another.
#pragma once

#include <string>

#include "core/result/result.h"

namespace foreshard {

inline constexpr const char* kUnknownDevice = "an unknown device";

// Simulated: the device kinds of the plan ("a100-80"); measured: what the file says, or kUnknownDevice.
std::string device_words(const Result& result);

// Whether times of the two may be held against each other. A measurement that does not say its device is one of the devices of its
// plan only when those are the host; two such measurements may be compared.
bool same_device(const Result& a, const Result& b);

// Whether a GPU that calls itself "NVIDIA A100-SXM4-80GB" can be the "a100-80" of a cluster. Names that tell no model can be anything.
bool can_be(const std::string& product, const std::string& gpu);

}  // namespace foreshard
