// The CUDA module, opened when somebody asks for it. Without CUDA in the build exec/no_cuda.cpp stands in its place.
#pragma once

#include <memory>

#include "exec/cuda/runtime.h"

namespace foreshard {

// Throws DeviceError that says what is missing: the module, one of its libraries, the driver, a device. The module stays open
// until the program ends.
std::unique_ptr<gpu::Runtime> load_cuda();

namespace gpu {
// What the module gives: a runtime, or null and why. `version`: of this header and all it names, so that a module of another
// build is refused.
inline constexpr int kModuleVersion = 6;
inline constexpr const char* kModuleEntry = "foreshard_cuda_runtime";
using ModuleEntry = Runtime* (*)(int version, const char** why);
}  // namespace gpu

}  // namespace foreshard
